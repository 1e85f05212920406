import { describe, expect, it } from 'vitest'
import { anywhere } from '../../src/base/command-line.js'
import { RelayError } from '../../src/base/errors.js'
import { silentLog } from '../../src/base/log.js'
import { Secret } from '../../src/base/secret.js'
import { hostSource, PROVIDER_NAMES } from '../../src/base/source-names.js'
import { isInBody } from '../../src/senders/scheme.js'
import { createSource } from '../../src/senders/source.js'
import { schemeOf } from '../../src/senders/senders.js'
import { indexHeaders } from '../../src/http/headers.js'
import { hasProof, signDelivery } from '../../src/senders/proof.js'
import { SCHEME_NAMES } from '../../src/senders/senders.js'
import { explainSignature } from '../../src/senders/explain.js'
import { type UnprovedReason } from '../../src/senders/unproved.js'
import type { WebhookRequest } from '../../src/senders/request.js'
import { Refusals } from '../../src/webhook/refusals.js'
import { verifySignature } from '../../src/senders/proving.js'
import type { Header } from '../kit/delivery.js'
import { JWT_SENDERS } from '../kit/jwt-senders.js'
import { KEY_SENDERS } from '../kit/key-senders.js'
import { NAMED_SENDERS } from '../kit/named-senders.js'
import { requestOf, type Sender, SENDERS } from '../kit/senders.js'

const NOW = 1_767_225_600_000
const HOUR = 3_600_000

// `relay show` and `relay wait` print their bodies without loading any sender.
it.each(PROVIDER_NAMES)('a body of %s has no secret that would be hidden', (name) => {
  const { proofs, also = [], secretMembers = [] } = schemeOf(hostSource(name))
  const places = [...proofs, ...also].map(({ place }) => place)
  expect([...places.filter(isInBody), ...secretMembers]).toEqual([])
})

/** Of senders whose header is the secret itself. */
const token = (scheme: string, proof: string): Sender => ({
  scheme,
  secret: 'a-secret-token',
  body: '{"object_kind":"push"}',
  type: 'application/json',
  event: 'webhook',
  id: undefined,
  proof,
  sign: (_, secret) => [[proof, secret]],
})
const TOKENS = {
  'gitlab, secret token': token('gitlab', 'x-gitlab-token'),
  token: token('token header=X-Api-Key', 'x-api-key'),
}

const signers = Object.entries(SENDERS)
const senders = [...signers, ...Object.entries(TOKENS)]
const timed = signers.filter(([, { tolerance }]) => tolerance !== undefined)
const senderOf = (name: string): Sender => Object.fromEntries(senders)[name] ?? expect.unreachable()

const secretsOf = ({ scheme, secret }: Sender, other = secret) => ({
  scheme: schemeOf(scheme),
  secrets: { current: new Secret(other) },
})

/** Why relay refuses a request of a sender; undefined if it is proved. */
async function reasonOf(
  sender: Sender,
  request: WebhookRequest,
  secret?: string,
  at: number | undefined = NOW,
) {
  const found = await explainSignature(request, secretsOf(sender, secret), at)
  return found.valid ? undefined : found
}

const reason = async (
  sender: Sender,
  request: WebhookRequest,
  secret?: string,
): Promise<UnprovedReason | undefined> => (await reasonOf(sender, request, secret))?.reason

/** A request with other lines in place of the one that proves it. */
function proved(
  { proof }: Sender,
  { headers, body }: WebhookRequest,
  lines: (line: Header) => readonly Header[],
) {
  return {
    headers: headers.flatMap((each) => (each[0].toLowerCase() === proof ? lines(each) : [each])),
    body,
  }
}

it('there is a sender for every scheme', () => {
  const all = [...senders.map(([, sender]) => sender), ...NAMED_SENDERS, ...KEY_SENDERS, ...JWT_SENDERS]
  const named = new Set(all.map(({ scheme }) => scheme.split(' ')[0]))
  // What is not signed has tests of its own, as have HTTP Basic, certificates and bodies that are tokens. Gitea's is GitHub's, and the rules of
  // google-pubsub are tried with a key set of this machine.
  expect(named).toEqual(
    new Set(
      ['github', ...SCHEME_NAMES].filter(
        (name) => !['none', 'basic', 'sns', 'paypal', 'google-pubsub', 'wix'].includes(name),
      ),
    ),
  )
})

it.each(senders)(
  'a request of %s is explained: its header, and the white space of its secret',
  async (_, sender) => {
    const request = await requestOf(sender, NOW)
    const reasonWith = (lines: (line: Header) => readonly Header[]) =>
      reason(sender, proved(sender, request, lines))
    expect(await reason(sender, request)).toBeUndefined()
    expect(await reasonWith((line) => [line, line])).toBe('repeated_signature')
    expect(await reasonWith(([name]) => [[name, '']])).toBe('empty_signature')
    const isToken = sender.secret === 'a-secret-token'
    expect(await reasonWith(() => [])).toBe(isToken ? 'unverifiable' : 'no_signature')
    const other = isToken ? 'X-Other-Token' : 'X-Other-Signature'
    expect(await reasonWith(([, value]) => [[other, value]])).toBe('wrong_header')
    // With a space in front, a signing token of GitLab looks like a secret token.
    const isMarked = sender.secret.startsWith('whsec_') && sender.scheme === 'gitlab'
    for (const secret of [`${sender.secret}\n`, ...(isMarked ? [] : [` ${sender.secret}`])])
      expect(await reason(sender, request, secret)).toBe('secret_white_space')
  },
)

it.each(signers)('a signature of %s in another form is malformed, and explained', async (_, sender) => {
  const request = await requestOf(sender, NOW)
  const [, value = ''] = request.headers.find(([name]) => name.toLowerCase() === sender.proof) ?? []
  const [digest] = /(?:[0-9a-f]{64,128}|[\w+/]{27,86}={1,2})$/.exec(value) ?? ['']
  const isHex = !digest.endsWith('=')
  const start = value.slice(0, -digest.length)
  const forms = [
    [
      `is in ${isHex ? 'base64' : 'hex'}`,
      Buffer.from(digest, isHex ? 'hex' : 'base64').toString(isHex ? 'base64' : 'hex'),
    ],
    ...(isHex ? [['is in upper case', digest.toUpperCase()] as const] : []),
    ['is malformed', digest.slice(1)],
  ] as const
  for (const [defect, malformed] of forms)
    expect(
      await reasonOf(
        sender,
        proved(sender, request, ([name]) => [[name, start + malformed]]),
      ),
    ).toMatchObject({
      reason: 'malformed_signature',
      hint: expect.stringContaining(`${defect}, expected `),
    })
})

it('a signed time that is too far from now is explained, and any counts where that is not known', async () => {
  const stripe = senderOf('stripe')
  const request = await requestOf(stripe, NOW)
  const stale = (how: string) => ({
    valid: false,
    reason: 'stale',
    hint: `its signed time is ${how} this machine's clock, and may be 300 s from it: is the clock right, or was it sent again?`,
  })
  const of = (drift: number) => reasonOf(stripe, request, stripe.secret, NOW + drift)
  expect(await of(301_000)).toEqual(stale('301 s behind'))
  expect(await of(-301_000)).toEqual(stale('301 s ahead of'))
  expect(await of(72 * HOUR)).toEqual(stale('72 h behind'))
  expect(await explainSignature(request, secretsOf(stripe), undefined)).toEqual({
    valid: true,
    by: 'current',
  })
})

it.each(timed)('the signed time of %s is covered by the signature', async (_, sender) => {
  const request = await requestOf(sender, NOW)
  const later = (text: string): string => text.replaceAll(String(NOW / 1000), String(NOW / 1000 + 1))
  const headers = request.headers.map(([name, value]): Header => [name, later(value)])
  const changed = { headers, body: Buffer.from(later(String(request.body))) }
  expect(await reason(sender, changed)).toBe('wrong_secret')
})

describe('the signature of a code host', () => {
  const GITHUB = schemeOf('github')
  const body = Buffer.from('Hello, World!')
  /** @see https://docs.github.com/webhooks/using-webhooks/validating-webhook-deliveries#testing-the-webhook-payload-validation */
  const published = 'sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17'

  it('has the UTF-8 of the secret as its key', () => {
    const signed = (key: string) =>
      signDelivery(new Secret(key), { id: '', body: Buffer.from('a'), now: 0 }, GITHUB)[0]?.[1]
    expect(signed('🔑')).not.toBe(signed('?'))
  })

  // Others are in the acceptance suite.
  it.each([`${published}\n`, ` ${published}`, `${published}, ${published}`, `sha256=${'０'.repeat(64)}`])(
    'is refused before anything is hashed: %j',
    (value) => {
      const lines = indexHeaders([['x-hub-signature-256', value]])
      const sender = { scheme: GITHUB, secrets: { current: new Secret("It's a Secret to Everybody") } }
      expect([verifySignature({ lines, body }, sender), hasProof({ lines }, GITHUB)]).toEqual([
        undefined,
        false,
      ])
    },
  )
})

describe('the list of refused requests', () => {
  const lines: string[] = []
  const log = { ...silentLog, warn: (line: string) => void lines.push(line) }
  const invalid = new RelayError('invalid_signature', 'Invalid signature')

  /** What the list has, five seconds later, of a request to a source called `mine` that came at this time. */
  async function refusal(sender: Sender, request: WebhookRequest, secret = sender.secret, at = NOW) {
    let now = at
    const { secrets } = secretsOf(sender, secret)
    const source = createSource({ name: 'mine', scheme: sender.scheme, secrets })
    const refusals = new Refusals({
      command: anywhere,
      sources: new Map([['mine', source]]),
      maxBody: 1000,
      log,
      clock: () => now,
    })
    refusals.http(invalid, request, source)
    now += 5000
    const [refused] = refusals.list.list()
    return { source: refused?.source, kind: refused?.kind, reason: await refused?.reason() }
  }

  it('says which source it was sent to, and what relay verify says', async () => {
    const stripe = senderOf('stripe')
    const why = "relay's secret has white space at its end, the sender's does not"
    const found = await refusal(stripe, await requestOf(stripe, NOW), `${stripe.secret}\n`)
    expect(found).toEqual({ source: 'mine', kind: 'invalid_signature', reason: why })
    await expect
      .poll(() => lines.splice(0))
      .toEqual([
        `POST /webhook/mine was answered 401: ${why} (unproved: event invoice.paid, delivery evt_1PExample; relay show refused:1)`,
      ])
  })

  it.each<[string, string, ((line: Header) => readonly Header[])?]>([
    ['other', "the token is not relay's secret: each webhook has its own signing token or secret token"],
    ['a-secret-token\n', "relay's secret has white space at its end, the sender's does not"],
    [
      'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
      "the request has a token in X-Gitlab-Token, but relay's secret is for a signature in Webhook-Signature: set the secret that the sender uses",
    ],
    [
      'a-secret-token',
      'there is no X-Gitlab-Token, which relay never stores: does the sender send it?',
      () => [],
    ],
  ])(
    'says why of a token, which it does not hold: %j',
    async (secret, why, lines = (line: Header) => [line]) => {
      const gitlab = senderOf('gitlab, secret token')
      const request = proved(gitlab, await requestOf(gitlab, NOW), lines)
      expect((await refusal(gitlab, request, secret)).reason).toBe(why)
    },
  )

  it.each(['stripe', 'slack'])(
    'names the difference of the clocks as it was when it came: %s',
    async (name) => {
      const request = await requestOf(senderOf(name), NOW)
      const found = await refusal(senderOf(name), request, undefined, NOW + 1_000_000)
      expect(found).toMatchObject({ reason: expect.stringContaining('its signed time is 1000 s behind') })
    },
  )
})
