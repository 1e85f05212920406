import { schemeOf } from '../../src/codehost/schemes.js'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Secret } from '../../src/base/secret.js'
import type { WebhookSecrets } from '../../src/base/settings.js'
import { ENCODING_IDS, writeJson } from '../../src/webhook/encodings.js'
import { explain, type Explanation, type Reason } from '../../src/webhook/explain.js'
import type { WebhookRequest } from '../../src/webhook/intake.js'
import { type DeliveryOptions, giteaDelivery, githubDelivery, SECRET, sign } from '../kit/delivery.js'

const [GITHUB, GITEA] = [schemeOf('github'), schemeOf('gitea')]
const SECRETS = { current: new Secret(SECRET) }

const FORM = 'application/x-www-form-urlencoded'
const form = (payload: string): string => new URLSearchParams({ payload }).toString()
const BODY = '{"action":"opened","zen":"<é> \\u001B & so"}'
const GITEA_BODY = '{\n  "action": "opened",\n  "zen": "\\u003cé\\u003e"\n}'
const digest = (body: string): string => sign(SECRET, Buffer.from(body)).slice('sha256='.length)

const explained = (request: WebhookRequest, secrets: WebhookSecrets = SECRETS, scheme = GITHUB) =>
  explain(request, { secrets, scheme })
const of = (options: DeliveryOptions, secrets?: WebhookSecrets) =>
  explained(githubDelivery({ body: BODY, ...options }), secrets)
const ofGitea = (options: DeliveryOptions) =>
  explained(giteaDelivery({ body: GITEA_BODY, ...options }), SECRETS, GITEA)
const because = (reason: Reason, hint: string): Explanation => ({ valid: false, reason, hint })

describe('the signature header', () => {
  const EXPECTED = 'expected X-Hub-Signature-256: sha256=<64 lower-case hex digits>'
  const RIGHT = `${EXPECTED}; otherwise it is right`
  const WRONG = `${EXPECTED}; it does not match the secret and the body either`
  const good = digest(BODY)
  const base64 = Buffer.from(good, 'hex').toString('base64')
  const withHeaders = (set: DeliveryOptions['set']) =>
    of({ set: { 'X-Hub-Signature-256': undefined, ...set } })

  it.each([
    [good, 'lacks the prefix sha256=', RIGHT],
    [`sha256=${good.toUpperCase()}`, 'is in upper case', RIGHT],
    [`sha256=${base64}`, 'is in base64', RIGHT],
    [base64.replace('=', ''), 'is in base64', RIGHT],
    ['f'.repeat(64), 'lacks the prefix sha256=', WRONG],
    [`sha256=${good.slice(1)}`, 'is malformed', EXPECTED],
    ['whsec\u001b[2J', 'is malformed', EXPECTED],
  ])('is malformed: %j', async (value, what, expected) => {
    const explanation = because('malformed_signature', `X-Hub-Signature-256 ${what}, ${expected}`)
    expect(await withHeaders({ 'X-Hub-Signature-256': value })).toEqual(explanation)
  })

  it.each([
    [{ 'X-Gitea-Signature': good }, 'X-Gitea-Signature', RIGHT],
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
  const pretty = JSON.stringify(JSON.parse(BODY), null, 4)

  const compact = JSON.stringify(JSON.parse(BODY))

  // Those of GitHub and of Gitea are shown by relay verify.
  it.each([
    ['as compact JSON', compact, pretty],
    ['as compact JSON, with a newline at its end', '{"a":1}\n', '{ "a": 1 }'],
    ["as compact JSON with Go's escapes", '{"a":"\\u003c"}', '{"a":"<"}'],
    ['as two-space indented JSON', '{\n  "a": "<"\n}', '{"a":"<"}'],
    ['as compact JSON in ASCII', '{"a":"\\u00e9"}', '{"a":"é"}'],
    ['as compact JSON in ASCII with escaped slashes, as PHP writes it', '{"a":"\\/\\u00e9"}', '{"a":"/é"}'],
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

/** An explanation is made after the answer was sent, when nothing catches an exception. */
it('explains any request without throwing', async () => {
  const json = fc.json().map((text) => Buffer.from(text))
  const asForm = fc.json().map((text) => Buffer.from(form(text)))
  const pieces = '{ [ " \\ \\u d800 , : } ] % payload= & 1e \r\n \uFEFF \u2028'.split(' ')
  const pieced = fc.array(fc.constantFrom(...pieces)).map((some) => Buffer.from(some.join('')))
  const value = fc.oneof(fc.string(), fc.constantFrom(`sha256=${'a'.repeat(64)}`, 'sha1=', ',', FORM))
  const names = ['X-Hub-Signature-256', 'X-Hub-Signature', 'X-Gitea-Signature', 'Content-Length']
  const request = fc.record({
    headers: fc.array(fc.tuple(fc.constantFrom('Content-Type', ...names), value)),
    body: fc.oneof(json, asForm, pieced, fc.uint8Array()),
  })
  await fc.assert(
    fc.asyncProperty(request, fc.constantFrom(GITHUB, GITEA), async (any, provider) => {
      const wrong = { valid: false, hint: expect.any(String) }
      expect(await explained(any, SECRETS, provider)).toMatchObject(wrong)
    }),
    { numRuns: 1000 },
  )
})
