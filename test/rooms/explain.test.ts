import { createHmac } from 'node:crypto'
import { schemeOf } from '../../src/senders/senders.js'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Secret } from '../../src/base/secret.js'
import type { WebhookSecrets } from '../../src/base/settings.js'
import { ENCODING_IDS, writeJson } from '../../src/senders/encodings.js'
import { explainSignature, type SignatureExplanation } from '../../src/senders/explain.js'
import { type UnprovedReason } from '../../src/senders/unproved.js'
import type { WebhookRequest } from '../../src/senders/request.js'
import { type DeliveryOptions, giteaDelivery, githubDelivery, SECRET, sign } from '../kit/delivery.js'

const [GITHUB, GITEA] = [schemeOf('github'), schemeOf('gitea')]
const SENDERS = ['stripe', 'standard', 'gitlab', 'linear'].map((name) => schemeOf(name))
const SECRETS = { current: new Secret(SECRET) }

const FORM = 'application/x-www-form-urlencoded'
const form = (payload: string): string => new URLSearchParams({ payload }).toString()
const BODY = '{"action":"opened","zen":"<é> \\u001B & so"}'
const GITEA_BODY = '{\n  "action": "opened",\n  "zen": "\\u003cé\\u003e"\n}'
const digest = (body: string): string => sign(SECRET, Buffer.from(body)).slice('sha256='.length)

const explained = (request: WebhookRequest, secrets: WebhookSecrets = SECRETS, scheme = GITHUB) =>
  explainSignature(request, { secrets, scheme }, 1000)
const of = (options: DeliveryOptions, secrets?: WebhookSecrets) =>
  explained(githubDelivery({ body: BODY, ...options }), secrets)
const ofGitea = (options: DeliveryOptions) =>
  explained(giteaDelivery({ body: GITEA_BODY, ...options }), SECRETS, GITEA)
const because = (reason: UnprovedReason, hint: string): SignatureExplanation => ({
  valid: false,
  reason,
  hint,
})

describe('the signature header', () => {
  const EXPECTED = 'expected X-Hub-Signature-256: sha256=<64 lower-case hex digits>'
  const RIGHT = `${EXPECTED}; otherwise it is right`
  const WRONG = `${EXPECTED}; it does not match the secret and the body either`
  const good = digest(BODY)
  const base64 = Buffer.from(good, 'hex').toString('base64')
  const withHeaders = (set: DeliveryOptions['set']) =>
    of({ set: { 'X-Hub-Signature-256': undefined, ...set } })

  it.each([
    ['f'.repeat(64), 'lacks the prefix sha256=', WRONG],
    ['whsec\u001b[2J', 'is malformed', EXPECTED],
  ])('is malformed: %j', async (value, what, expected) => {
    const explanation = because('malformed_signature', `X-Hub-Signature-256 ${what}, ${expected}`)
    expect(await withHeaders({ 'X-Hub-Signature-256': value })).toEqual(explanation)
  })

  it.each([
    [{ 'x-hub-signature': `sha256=${good}` }, 'X-Hub-Signature', RIGHT],
    [{ 'X-Payload-Digest': `SHA-256=${base64}` }, 'X-Payload-Digest', RIGHT],
    [{ 'X-Signature': 'f'.repeat(64) }, 'X-Signature', WRONG],
    [{ 'X-Signature': 'f'.repeat(64), 'X-Hmac': good }, 'X-Hmac', RIGHT],
  ])('has another name: %j', async (headers, name, expected) => {
    const explanation = because('wrong_header', `the signature is in ${name}, ${expected}`)
    expect(await withHeaders(headers)).toEqual(explanation)
  })
})

describe('the body', () => {
  const CHANGED = 'the body was re-encoded on its way: it was signed'
  // Those of GitHub and of Gitea are shown by relay verify.
  it.each([
    ['as compact JSON, with a newline at its end', '{"a":1}\n', '{ "a": 1 }'],
    ['as JSON with spaces and in ASCII, as Python writes it', '{"a": "\\u00e9"}', '{"a":"é"}'],
    ['with a newline at its end', `${BODY}\n`, BODY],
    ['without white space at its end', BODY, `${BODY} \n`],
    ['with LF line ends', GITEA_BODY, GITEA_BODY.replaceAll('\n', '\r\n')],
    ['with CRLF line ends', GITEA_BODY.replaceAll('\n', '\r\n'), GITEA_BODY],
    ['without a byte order mark', BODY, `\uFEFF${BODY}`],
    ['with a byte order mark', `\uFEFF${BODY}`, BODY],
    ['as UTF-8 but was read as Latin-1', BODY, Buffer.from(BODY).toString('latin1')],
  ])('was signed %s', async (as, signed, body) => {
    const expected = because('re_encoded', `${CHANGED} ${as}`)
    expect(await of({ signed, body })).toEqual(expected)
    expect(await ofGitea({ signed, body })).toEqual(expected)
    const rotated = { current: new Secret('new'), previous: new Secret(SECRET) }
    expect(await of({ signed, body }, rotated)).toEqual(expected)
  })

  it('was signed in one encoding and arrived in another', async () => {
    const encoding = fc.constantFrom(...ENCODING_IDS)
    const unit = fc.constantFrom('<', '\u001b', '\b', 'é', '/', '\u007f', '&payload=', '"')
    const text = fc.string({ unit })
    const value = fc.jsonValue({ stringUnit: 'binary' })
    await fc.assert(
      fc.asyncProperty(fc.tuple(text, value), encoding, encoding, async (both, before, after) => {
        const [signed, body] = [writeJson(before, both), writeJson(after, both)]
        const explanation = await of({ signed, body })
        const outcome = explanation.valid ? 'valid' : explanation.reason
        expect(outcome).toBe(signed === body ? 'valid' : 're_encoded')
      }),
    )
  })
})

describe('the secret', () => {
  it.each([
    [' ', '', 'begins with a space'],
    ['\n', '', 'begins with a newline'],
    ['\t', '', 'begins with a tab'],
    ['', '\t', 'ends in a tab'],
    [' ', '\n', 'begins with a space and ends in a newline'],
    [' ', ' ', 'begins with a space and ends in a space'],
  ])('has white space on both sides at the sender: %j %j', async (start, end, what) => {
    const explanation = because('secret_white_space', `the sender's secret ${what}, relay's does not`)
    const secret = start + SECRET + end
    expect(await of({ secret })).toEqual(explanation)
    expect(await of({ secret }, { current: new Secret('new'), previous: SECRETS.current })).toEqual(
      explanation,
    )
  })

  it('is never assumed to be only white space', async () => {
    for (const secret of ['', '\n'])
      expect(await of({ secret }, { current: new Secret(' ') })).toMatchObject({ reason: 'wrong_secret' })
  })
})

describe('a sender that is no code host', () => {
  const AT = 1_767_225_600
  const BODY_OF_ITS_OWN = '{"id":"evt_1","type":"invoice.paid"}'
  const BASE64_KEY = Buffer.alloc(24, 5).toString('base64')
  const hmac = (key: string | Buffer, text: string) => createHmac('sha256', key).update(text)
  const stripe = (key: string | Buffer, signed = `${AT}.${BODY_OF_ITS_OWN}`): Headers => ({
    'Stripe-Signature': `t=${AT},v1=${hmac(key, signed).digest('hex')}`,
  })
  const standard = (key: string | Buffer, name = 'webhook'): Headers => ({
    [`${name}-id`]: 'msg_1',
    [`${name}-timestamp`]: String(AT),
    [`${name}-signature`]: `v1,${hmac(key, `msg_1.${AT}.${BODY_OF_ITS_OWN}`).digest('base64')}`,
  })
  const plain = (name: string, key: string, signed = BODY_OF_ITS_OWN): Headers => ({
    [name]: hmac(key, signed).digest('hex'),
  })
  type Headers = Readonly<Record<string, string>>
  const without = (headers: Headers, name: string): Headers =>
    Object.fromEntries(Object.entries(headers).filter(([each]) => each !== name))

  const decoded = Buffer.from(BASE64_KEY, 'base64')
  const marked = `whsec_${BASE64_KEY}`
  const OTHER = 'signed with another secret, or the body was changed on its way'
  const PART = 'which the signature covers, is'
  const GONE = `${PART} missing or given more than once`
  const STRIPE_SHAPE = 'expected Stripe-Signature: t=<time>,v1=<64 lower-case hex digits>'

  it.each<[UnprovedReason, string, scheme: string, secret: string, Headers, body?: string]>([
    // The header.
    [
      'no_signature',
      'there is no Stripe-Signature: does the webhook have a secret at the sender?',
      'stripe',
      marked,
      {},
    ],
    [
      'wrong_header',
      'the signature is in Stripe-Signature, expected Webhook-Signature: v1,<base64 of 32 bytes>; it does not match the secret and the body either',
      'standard',
      marked,
      stripe(marked),
    ],
    [
      'malformed_signature',
      `Stripe-Signature lacks the prefix v1=, ${STRIPE_SHAPE}; otherwise it is right`,
      'stripe',
      marked,
      { 'Stripe-Signature': stripe(marked)['Stripe-Signature']?.replace('v1=', 'v0=') ?? '' },
    ],
    [
      'only_sha1',
      'X-Shopify-Hmac-Sha256 holds a SHA-1 signature, expected X-Shopify-Hmac-Sha256: <base64 of 32 bytes>',
      'shopify',
      'x',
      { 'X-Shopify-Hmac-Sha256': 'a'.repeat(40) },
    ],
    [
      'only_sha1',
      'X-Hub-Signature holds a SHA-1 signature, expected X-Hub-Signature: sha256=<64 lower-case hex digits>',
      'bitbucket',
      'x',
      { 'X-Hub-Signature': `sha1=${'a'.repeat(40)}` },
    ],
    [
      'malformed_signature',
      'Authorization-Token lacks the prefix Bearer, expected Authorization-Token: Bearer <the secret>; otherwise it is right',
      'token header=Authorization-Token prefix=Bearer',
      'x-1',
      { 'Authorization-Token': 'x-1' },
    ],
    // What it covers.
    [
      'malformed_part',
      `t= in Stripe-Signature, ${GONE}`,
      'stripe',
      marked,
      { 'Stripe-Signature': `v1=${'a'.repeat(64)}` },
    ],
    ['malformed_part', `Webhook-ID, ${GONE}`, 'standard', marked, without(standard(decoded), 'webhook-id')],
    [
      'malformed_part',
      `Svix-Timestamp, ${GONE}`,
      'standard',
      marked,
      without(standard(decoded, 'svix'), 'svix-timestamp'),
    ],
    [
      'malformed_part',
      `Webhook-Timestamp, ${PART} a date of RFC 3339, expected Unix seconds`,
      'standard',
      marked,
      { ...standard(decoded), 'webhook-timestamp': '2026-01-01T00:00:00Z' },
    ],
    [
      'other_template',
      'the signature covers {body}, expected {timestamp}.{body}',
      'stripe',
      marked,
      stripe(marked, BODY_OF_ITS_OWN),
    ],
    [
      'other_template',
      'the signature covers {timestamp}.{body} with the time in X-Timestamp, expected {body}',
      'hmac header=X-Signature',
      'x',
      { ...plain('X-Signature', 'x', `${AT}.${BODY_OF_ITS_OWN}`), 'X-Timestamp': String(AT) },
    ],
    [
      're_encoded',
      'the body was re-encoded on its way: it was signed as compact JSON',
      'stripe',
      marked,
      stripe(marked),
      JSON.stringify(JSON.parse(BODY_OF_ITS_OWN), null, 2),
    ],
    [
      'form',
      'the signature covers the JSON inside the form, not the form as sent',
      'sentry',
      'x',
      { ...plain('Sentry-Hook-Signature', 'x'), 'Content-Type': FORM },
      form(BODY_OF_ITS_OWN),
    ],
    // The secret.
    [
      'secret_form',
      'it is signed with the secret decoded from base64: this sender uses it as text',
      'stripe',
      marked,
      stripe(decoded),
    ],
    ['secret_form', "relay's secret lacks the whsec_ at its start", 'stripe', BASE64_KEY, stripe(marked)],
    [
      'secret_form',
      "relay's secret begins with whsec_, the sender's does not",
      'stripe',
      marked,
      stripe(BASE64_KEY),
    ],
    ...[marked, BASE64_KEY].map((key): [UnprovedReason, string, string, string, Headers] => [
      'secret_form',
      'it is signed with the secret as text: this sender decodes the base64 after whsec_',
      'standard',
      marked,
      standard(key),
    ]),
    [
      'secret_form',
      "relay's secret is not base64 after whsec_: was it copied whole?",
      'standard',
      'whsec_not/base64=x',
      standard(decoded),
    ],
    ['secret_form', "relay's secret lacks the whsec_ at its start", 'gitlab', BASE64_KEY, standard(decoded)],
    [
      'wrong_header',
      "the request has a signature in Webhook-Signature, but relay's secret is for a token in X-Gitlab-Token: set the secret that the sender uses",
      'gitlab',
      'a-token',
      standard(decoded),
    ],
    [
      'wrong_secret',
      `${OTHER}: each endpoint has its own signing secret, test and live mode differ, and stripe listen prints another`,
      'stripe',
      marked,
      stripe('whsec_live'),
    ],
  ])('%s: %s', async (reason, hint, scheme, secret, headers, body = BODY_OF_ITS_OWN) => {
    const request = { headers: Object.entries(headers), body: Buffer.from(body) }
    const sender = { scheme: schemeOf(scheme), secrets: { current: new Secret(secret) } }
    expect(await explainSignature(request, sender, AT * 1000)).toEqual(because(reason, hint))
    for (const hidden of [secret, BASE64_KEY, 'invoice'].filter((text) => text.length > 3))
      expect(hint).not.toContain(hidden)
  })

  it('is found with the previous secret, of another kind, too', async () => {
    const secrets = { current: new Secret(marked), previous: new Secret('a-token') }
    const sender = { scheme: schemeOf('gitlab'), secrets }
    const of = (headers: Headers) =>
      explainSignature(
        { headers: Object.entries(headers), body: Buffer.from(BODY_OF_ITS_OWN) },
        sender,
        AT * 1000,
      )
    expect(await of({ 'X-Gitlab-Token': 'a-token' })).toEqual({ valid: true, by: 'previous' })
    expect(await of(standard(decoded))).toEqual({ valid: true, by: 'current' })
    expect(await of({ 'X-Gitlab-Token': 'b-token' })).toMatchObject({ reason: 'wrong_secret' })
  })
})

/** An explanation is made after the answer was sent, when nothing catches an exception. */
it('explains any request without throwing', async () => {
  const json = fc.json().map((text) => Buffer.from(text))
  const asForm = fc.json().map((text) => Buffer.from(form(text)))
  const pieces = '{ [ " \\ \\u d800 , : } ] % payload= & 1e \r\n \uFEFF \u2028'.split(' ')
  const pieced = fc.array(fc.constantFrom(...pieces)).map((some) => Buffer.from(some.join('')))
  const value = fc.oneof(
    fc.string(),
    fc.constantFrom(`sha256=${'a'.repeat(64)}`, `t=1,v1=${'a'.repeat(64)}`, '1', 'sha1=', ',', FORM),
  )
  const names = ['X-Hub-Signature-256', 'X-Hub-Signature', 'X-Gitea-Signature', 'Content-Length']
  names.push(
    'Stripe-Signature',
    'Webhook-Signature',
    'Webhook-Timestamp',
    'X-Gitlab-Token',
    'Linear-Signature',
  )
  const request = fc.record({
    headers: fc.array(fc.tuple(fc.constantFrom('Content-Type', ...names), value)),
    body: fc.oneof(json, asForm, pieced, fc.uint8Array()),
  })
  await fc.assert(
    fc.asyncProperty(request, fc.constantFrom(GITHUB, GITEA, ...SENDERS), async (any, provider) => {
      const wrong = { valid: false, hint: expect.any(String) }
      expect(await explained(any, SECRETS, provider)).toMatchObject(wrong)
    }),
    { numRuns: 1000 },
  )
})
