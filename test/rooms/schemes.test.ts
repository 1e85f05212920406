import { createHmac } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { RelayError } from '../../src/base/errors.js'
import { silentLog } from '../../src/base/log.js'
import { Secret } from '../../src/base/secret.js'
import { schemeOf } from '../../src/codehost/schemes.js'
import type { Delivery } from '../../src/journal/types.js'
import { SCHEME_NAMES } from '../../src/schemes/senders.js'
import { explain, type Reason } from '../../src/webhook/explain.js'
import { createIntake, type WebhookRequest } from '../../src/webhook/intake.js'
import { Refusals } from '../../src/webhook/refusals.js'
import type { Header } from '../kit/delivery.js'

/** A delivery of a sender, which relay must take at the moment when it was signed. */
interface Row {
  readonly scheme: string
  readonly secret: string
  readonly body: string
  /** Of the signature, or the token. */
  readonly proof: Header
  readonly headers?: readonly Header[]
  /** Unix seconds, and how far from it the sender's own code lets it be. */
  readonly signed?: readonly [at: number, tolerance: number]
  /** Its published body names no event, so that only its proof counts here. */
  readonly nameless?: true
}

type Encoding = 'hex' | 'base64'

function hmac(key: string | Buffer, text: string, encoding: Encoding = 'hex', algorithm = 'sha256'): string {
  return createHmac(algorithm, key).update(text).digest(encoding)
}

const SECRET = "It's a Secret to Everybody"
const JSON_BODY = '{"action":"created","type":"a.b","data":{"id":"<é>"}}'
const KEY = Buffer.alloc(32, 7)
/** GitLab's form of a signing token. */
const SIGNING_TOKEN = `whsec_${KEY.toString('base64')}`
const NOW = 1_767_225_600

/** From the source of the standard's libraries, and of svix. */
const STANDARD = {
  scheme: 'standard',
  secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
  body: '{"test": 2432232314}',
  signed: [1_614_265_330, 300],
  nameless: true,
} as const
const STANDARD_ID = 'msg_p5jXN8AQM9LWM0D4loKWxJek'
const STANDARD_SIGNATURE = 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE='
const PAGERDUTY = '{"event":{"id":"E1","event_type":"incident.triggered"}}'
const LINEAR = `{"type":"Issue","webhookTimestamp":${NOW * 1000}}`
/** From the page on requests of slash commands. */
const SLACK =
  'token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c'

/** The values of senders' own pages and packages where there are any; the others are computed here. */
const ROWS: Readonly<Record<string, Row>> = {
  github: {
    scheme: 'github',
    secret: SECRET,
    body: JSON_BODY,
    proof: ['X-Hub-Signature-256', `sha256=${hmac(SECRET, JSON_BODY)}`],
    headers: [
      ['X-GitHub-Event', 'push'],
      ['X-GitHub-Delivery', 'd-1'],
    ],
  },
  gitea: {
    scheme: 'gitea',
    secret: SECRET,
    body: JSON_BODY,
    proof: ['X-Hub-Signature-256', `sha256=${hmac(SECRET, JSON_BODY)}`],
    headers: [
      ['X-Gitea-Event', 'push'],
      ['X-Gitea-Delivery', 'd-1'],
    ],
  },
  standard: {
    ...STANDARD,
    proof: ['webhook-signature', STANDARD_SIGNATURE],
    headers: [
      ['webhook-id', STANDARD_ID],
      ['webhook-timestamp', '1614265330'],
    ],
  },
  svix: {
    ...STANDARD,
    proof: ['svix-signature', STANDARD_SIGNATURE],
    headers: [
      ['svix-id', STANDARD_ID],
      ['svix-timestamp', '1614265330'],
    ],
  },
  stripe: {
    scheme: 'stripe',
    secret: 'whsec_test_secret',
    body: JSON.stringify({ id: 'evt_test_webhook', object: 'event' }, null, 2),
    proof: [
      'Stripe-Signature',
      't=12345,v1=2672d138c9a412830f3bfe2ecc5bfb3277cf6f5b49d0119d77dd6cb64da1257e',
    ],
    signed: [12_345, 300],
    nameless: true,
  },
  slack: {
    scheme: 'slack',
    secret: '8f742231b10e8888abcd99yyyzzz85a5',
    body: SLACK,
    proof: ['X-Slack-Signature', 'v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503'],
    headers: [
      ['Content-Type', 'application/x-www-form-urlencoded'],
      ['X-Slack-Request-Timestamp', '1531420618'],
    ],
    signed: [1_531_420_618, 300],
  },
  'gitlab, signing token': {
    scheme: 'gitlab',
    secret: SIGNING_TOKEN,
    body: JSON_BODY,
    proof: ['webhook-signature', `v1,${hmac(KEY, `d-1.${NOW}.${JSON_BODY}`, 'base64')}`],
    headers: [
      ['X-Gitlab-Event', 'Push Hook'],
      ['webhook-id', 'd-1'],
      ['webhook-timestamp', String(NOW)],
    ],
    signed: [NOW, 300],
  },
  'gitlab, secret token': {
    scheme: 'gitlab',
    secret: 'a-secret-token',
    body: JSON_BODY,
    proof: ['X-Gitlab-Token', 'a-secret-token'],
    headers: [['X-Gitlab-Event', 'Push Hook']],
  },
  linear: {
    scheme: 'linear',
    secret: 'lin_wh_x',
    body: LINEAR,
    proof: ['Linear-Signature', hmac('lin_wh_x', LINEAR)],
    signed: [NOW, 60],
  },
  shopify: {
    scheme: 'shopify',
    secret: 'test_secret_key',
    body: '{"foo": "bar"}',
    proof: ['X-Shopify-Hmac-Sha256', 'B23tXN681gZ0qIWNRrgtzBE9XSDo5yaUu6wfmhu3a7g='],
    headers: [['X-Shopify-Topic', 'orders/create']],
  },
  bitbucket: {
    scheme: 'bitbucket',
    secret: SECRET,
    body: JSON_BODY,
    proof: ['X-Hub-Signature', `sha256=${hmac(SECRET, JSON_BODY)}`],
    headers: [['X-Event-Key', 'repo:push']],
  },
  sentry: {
    scheme: 'sentry',
    secret: 'client-secret',
    body: JSON_BODY,
    proof: ['Sentry-Hook-Signature', hmac('client-secret', JSON_BODY)],
    headers: [['Sentry-Hook-Resource', 'issue']],
  },
  pagerduty: {
    scheme: 'pagerduty',
    secret: 'lDQH+/==',
    body: PAGERDUTY,
    proof: ['X-PagerDuty-Signature', `v1=${hmac('old', PAGERDUTY)},v1=${hmac('lDQH+/==', PAGERDUTY)}`],
  },
  hmac: {
    scheme:
      'hmac header=X-Signature prefix=sha512= algorithm=sha512 encoding=base64 time=X-Time id=X-Id signed={id}:{timestamp}:{body} tolerance=1m',
    secret: 'own',
    body: 'any bytes',
    proof: ['X-Signature', `sha512=${hmac('own', `d-1:${NOW}:any bytes`, 'base64', 'sha512')}`],
    headers: [
      ['X-Id', 'd-1'],
      ['X-Time', String(NOW)],
    ],
    signed: [NOW, 60],
  },
  token: {
    scheme: 'token header=X-Api-Key',
    secret: 'own-token',
    body: 'any bytes',
    proof: ['X-Api-Key', 'own-token'],
  },
}

const rows = Object.entries(ROWS)
const timed = rows.flatMap(([name, row]) => (row.signed ? [[name, row, ...row.signed] as const] : []))
const provesBody = rows.filter(([, { scheme, secret, proof }]) => scheme !== 'none' && proof[1] !== secret)

interface Change {
  readonly body?: string
  readonly secret?: string
  readonly proofs?: readonly Header[]
  /** Unix seconds. */
  readonly at?: number
}

function requestOf(row: Row, { body = row.body, proofs = [row.proof] }: Change = {}): WebhookRequest {
  return { headers: [...(row.headers ?? []), ...proofs], body: Buffer.from(body) }
}

function senderOf(row: Row, { secret = row.secret }: Change = {}) {
  return { scheme: schemeOf(row.scheme), secrets: { current: new Secret(secret) } }
}

/** What is stored, or why it is refused. */
async function taken(row: Row, change: Change = {}): Promise<Delivery | readonly unknown[]> {
  const stored: Delivery[] = []
  const intake = createIntake({
    sources: new Map([['mine', { name: 'mine', schemeText: row.scheme, ...senderOf(row, change) }]]),
    journal: {
      append: async (delivery) => {
        stored.push(delivery)
        return { n: 1, duplicate: false, targets: [] }
      },
    },
    plan: () => ({ targets: [], onDuplicate: 'if-failed' }),
    clock: () => (change.at ?? row.signed?.[0] ?? 0) * 1000,
  })
  try {
    await intake.receive(requestOf(row, change), { source: 'mine' })
    return stored[0] ?? []
  } catch (error) {
    const { kind, cause } = Object(error)
    return cause instanceof Error ? [kind, cause.message] : [kind]
  }
}

async function reasonOf(row: Row, change: Change = {}): Promise<Reason | 'valid'> {
  const explanation = await explain(
    requestOf(row, change),
    senderOf(row, change),
    (row.signed?.[0] ?? 0) * 1000,
  )
  return explanation.valid ? 'valid' : explanation.reason
}

const REFUSED = ['invalid_signature']

/** The secret that proved it, or the kind of the error. Without an event that is refused only after its proof was found right. */
async function proving(row: Row, change: Change = {}): Promise<unknown> {
  const outcome = await taken(row, change)
  if (!('length' in outcome)) return outcome.verifiedBy
  return row.nameless && outcome[0] === 'invalid_event' ? 'current' : outcome[0]
}

it('there is a row for every scheme', () => {
  const named = new Set(rows.map(([, { scheme }]) => scheme.split(' ')[0]))
  // What is not signed has a test of its own.
  const all = ['github', 'gitea', ...SCHEME_NAMES].filter((name) => name !== 'none')
  expect(named).toEqual(new Set(all))
})

describe.each(rows)('%s', (_, row) => {
  const [header, value] = row.proof

  it('is taken as its sender signs it', async () => {
    expect(await proving(row)).toBe('current')
    expect(await reasonOf(row)).toBe('valid')
  })

  it('is refused with another secret', async () => {
    for (const secret of ['other', `${row.secret}x`, ''])
      expect(await taken(row, { secret })).toEqual(REFUSED)
  })

  it('is refused without its proof, with an empty one, and with two lines of it', async () => {
    for (const proofs of [[], [[header, '']], [row.proof, row.proof], [row.proof, [header, 'x']]] as const)
      expect(await taken(row, { proofs })).toEqual(REFUSED)
    expect(await reasonOf(row, { proofs: [row.proof, row.proof] })).toBe('repeated_signature')
    expect(await reasonOf(row, { proofs: [[header, '']] })).toBe('empty_signature')
    expect(await reasonOf(row, { proofs: [] })).toMatch(/^(?:no_signature|unverifiable)$/)
  })

  it('is explained where white space is around the secret, or the proof is in another header', async () => {
    // With a space in front, a signing token of GitLab looks like a secret token.
    const isMarked = row.secret.startsWith('whsec_') && row.scheme === 'gitlab'
    for (const secret of [`${row.secret}\n`, ...(isMarked ? [] : [` ${row.secret}`])]) {
      expect(await taken(row, { secret })).toEqual(REFUSED)
      expect(await reasonOf(row, { secret })).toBe('secret_white_space')
    }
    const moved = row.proof[1] === row.secret ? 'X-Other-Token' : 'X-Other-Signature'
    expect(await reasonOf(row, { proofs: [[moved, value]] })).toBe('wrong_header')
  })
})

it.each(provesBody)('%s is refused after one byte of its body was changed', async (_, row) => {
  for (const at of [0, Math.floor(row.body.length / 2), row.body.length - 1]) {
    const bytes = Buffer.from(row.body)
    bytes[at] = (bytes[at] ?? 0) ^ 1
    expect(await taken(row, { body: bytes.toString('latin1') })).toEqual(REFUSED)
  }
  expect(await taken(row, { body: `${row.body} ` })).toEqual(REFUSED)
})

it.each(provesBody)('%s is refused in another form of its signature, which is explained', async (_, row) => {
  const [header, value] = row.proof
  const [digest] = /(?:[0-9a-f]{64}|[\w+/]{43,86}={1,2})$/.exec(value) ?? ['']
  const isHex = !digest.endsWith('=')
  const other = Buffer.from(digest, isHex ? 'hex' : 'base64').toString(isHex ? 'base64' : 'hex')
  // Those of other secrets are left out.
  const start = value
    .slice(0, -digest.length)
    .replace(/^.*,(?=v1=$)/, (before) => (/t=/.test(before) ? before : ''))
  const forms = [
    [`is in ${isHex ? 'base64' : 'hex'}`, start + other],
    ...(isHex ? [['is in upper case', start + digest.toUpperCase()] as const] : []),
    ['is malformed', start + digest.slice(1)],
  ] as const
  for (const [defect, malformed] of forms) {
    const change = { proofs: [[header, malformed]] } as const
    expect(await taken(row, change)).toEqual(REFUSED)
    expect(await explain(requestOf(row, change), senderOf(row), 0)).toMatchObject({
      reason: 'malformed_signature',
      hint: expect.stringContaining(`${defect}, expected `),
    })
  }
})

describe.each(timed)('the signed time of %s', (_, row, at, tolerance) => {
  it('may be as far from now as its sender says, and no farther', async () => {
    for (const drift of [-tolerance, 0, tolerance])
      expect(await proving(row, { at: at + drift })).toBe('current')
    const far = tolerance + 1
    const stale = (side: string): string =>
      `its signed time is ${far} s ${side} this machine's clock, and may be ${tolerance} s from it: is the clock right, or was it sent again?`
    expect(await taken(row, { at: at + far })).toEqual(['invalid_signature', stale('behind')])
    expect(await taken(row, { at: at + 3 * 86_400 })).toEqual([
      'invalid_signature',
      expect.stringContaining("its signed time is 72 h behind this machine's clock, and may be "),
    ])
    expect(await taken(row, { at: at - far })).toEqual(['invalid_signature', stale('ahead of')])
    expect(await explain(requestOf(row), senderOf(row), (at + far) * 1000)).toEqual({
      valid: false,
      reason: 'stale',
      hint: stale('behind'),
    })
    expect(await explain(requestOf(row), senderOf(row), undefined)).toEqual({ valid: true, by: 'current' })
  })

  it('is covered by the signature', async () => {
    const later = (text: string): string => text.replaceAll(String(at), String(at + 1))
    const headers = row.headers?.map(([name, value]): Header => [name, later(value)])
    const [header, value] = row.proof
    const changed = {
      ...row,
      ...(headers && { headers }),
      proof: [header, later(value)] as const,
      body: later(row.body),
    }
    expect(await taken(changed)).toEqual(REFUSED)
  })
})

describe('the list of refused requests', () => {
  const lines: string[] = []
  const log = { ...silentLog, warn: (line: string) => void lines.push(line) }

  /** The reason of a request to a source called `mine`, and of what is stored of it. */
  async function refusal(row: Row, change: Change, error: RelayError) {
    let now = ((row.signed?.[0] ?? 0) + 1000) * 1000
    const source = { name: 'mine', schemeText: row.scheme, ...senderOf(row, change) }
    const sources = new Map([[source.name, source]])
    const refusals = new Refusals({ sources, maxBody: 1000, log, clock: () => now })
    refusals.http(error, requestOf(row, change), source)
    now += 5000
    const [refused] = refusals.list.list()
    return { source: refused?.source, kind: refused?.kind, reason: await refused?.reason() }
  }

  const invalid = new RelayError('invalid_signature', 'Invalid signature')
  const rowOf = (name: string): Row => ROWS[name] ?? expect.unreachable()

  it('says which source it was sent to, and what relay verify says', async () => {
    const change = { secret: 'whsec_test_secret\n' }
    const reason = "relay's secret has white space at its end, the sender's does not"
    expect(await refusal(rowOf('stripe'), change, invalid)).toEqual({
      source: 'mine',
      kind: 'invalid_signature',
      reason,
    })
    await expect
      .poll(() => lines.splice(0))
      .toEqual([
        `POST /webhook/mine was answered 401: ${reason} (unproved: event (none), delivery evt_test_webhook; relay show refused:1)`,
      ])
  })

  it('says why of a token, which it does not hold', async () => {
    const row = rowOf('gitlab, secret token')
    const of = async (change: Change) => (await refusal(row, change, invalid)).reason
    expect(await of({ secret: 'other' })).toBe(
      "the token is not relay's secret: each webhook has its own signing token or secret token",
    )
    expect(await of({ secret: 'a-secret-token\n' })).toBe(
      "relay's secret has white space at its end, the sender's does not",
    )
    expect(await of({ secret: SIGNING_TOKEN })).toMatch(/^the request has a token in X-Gitlab-Token, but/)
    expect(await of({ proofs: [] })).toMatch(/^there is no X-Gitlab-Token/)
  })

  it('names the difference of the clocks as it was when the request came', async () => {
    const stale =
      "its signed time is 1000 s behind this machine's clock, and may be 300 s from it: is the clock right, or was it sent again?"
    for (const [, row] of Object.entries({ a: rowOf('stripe'), b: rowOf('slack') }))
      expect(await refusal(row, {}, invalid)).toMatchObject({ kind: 'invalid_signature', reason: stale })
  })
})
