import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { exchange, requestText } from '../kit/http.js'
import { type Place, place } from '../kit/place.js'

let here: Place
let port: number
beforeAll(async () => {
  here = await place({ host: 'none' })
  port = (await here.serve()).port
})
afterAll(() => here[Symbol.asyncDispose]())

const CHALLENGE = 'q83vASNFZ4mrze8BI0VniQ'

describe('GET /health', () => {
  const health = (headers: Record<string, string> = {}, at = port) =>
    exchange(at, requestText('GET', '/health', headers))
  const plain = {
    status: 200,
    headers: {
      'content-type': 'application/json',
      'content-length': '15',
      'x-request-id': expect.stringMatching(/^[\da-f-]{36}$/),
      date: expect.any(String),
      connection: 'keep-alive',
      'keep-alive': 'timeout=5',
    },
    body: '{"status":"ok"}',
  }

  it('shows that the service is running', async () => {
    expect(await health()).toEqual(plain)
  })

  it('proves the instance to a caller that asks', async () => {
    await using other = await place({ host: 'none' })
    const otherPort = (await other.serve()).port
    const answers = [
      await health({ 'X-Relay-Challenge': CHALLENGE }),
      await health({ 'X-Relay-Challenge': CHALLENGE }),
      await health({ 'X-Relay-Challenge': `${CHALLENGE}A` }),
      await health({ 'X-Relay-Challenge': CHALLENGE }, otherPort),
    ]
    const proof = { 'x-relay-instance': expect.stringMatching(/^[\da-f]{64}$/) }
    expect(answers).toEqual(answers.map(() => ({ ...plain, headers: { ...plain.headers, ...proof } })))
    const [one, same, ...others] = answers.map(({ headers }) => headers['x-relay-instance'])
    expect(same).toBe(one)
    expect(new Set([one, ...others]).size).toBe(3)
  })

  it.each([
    '',
    'short',
    'a'.repeat(257),
    `${CHALLENGE} ${CHALLENGE}`,
    `${CHALLENGE}, ${CHALLENGE}`,
    `é${CHALLENGE}`,
  ])('proves nothing to the challenge %j', async (challenge) => {
    expect(await health({ 'X-Relay-Challenge': challenge })).toEqual(plain)
  })
})

const RUNNING = ['relay is running', 'This address receives webhooks and signs users in.']
const SIGNED_IN = [
  'You are signed in',
  'relay has stored your access token and can act for you at the code host.',
]
const failed = (text: string): string[] => ['You are not signed in', text]

/** What a query says, and the heading and first sentence of the page for it. */
const OUTCOMES: readonly (readonly [query: string, texts: readonly string[]])[] = [
  ['', RUNNING],
  ['?auth=maybe&reason=access_denied', RUNNING],
  ['?auth=success&auth=error', RUNNING],
  ['?auth=success&userId=ada', SIGNED_IN],
  [
    '?auth=error&reason=invalid_state',
    failed('This sign-in had expired, was used before, or began in another browser.'),
  ],
  ['?auth=error&reason=access_denied', failed('The code host reports that access was not granted.')],
  [
    '?auth=error&reason=provider_unavailable',
    failed('The code host could not be reached, or did not answer as it should.'),
  ],
  ['?auth=error&reason=exchange_failed', failed('The code host did not give relay an access token.')],
  ['?auth=error&reason=storage_failed', failed('relay could not store your access token.')],
  ['?auth=error', failed('Signing in did not succeed.')],
  [
    '?auth=error&reason=%3Cscript%3Ealert(1)%3C/script%3E&userId=mallory',
    failed('Signing in did not succeed.'),
  ],
]

describe('GET /', () => {
  it.each(OUTCOMES)('for %j is one fixed page that may run and load nothing', async (query, texts) => {
    const { status, headers, body } = await exchange(port, requestText('GET', `/${query}`))
    expect(status).toBe(200)
    expect(headers).toMatchObject({
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': expect.stringMatching(
        /^default-src 'none'; style-src 'sha256-[^']+'; form-action 'none';/,
      ),
      'cache-control': 'no-store',
    })
    const [, heading, text] = /<h1>(.*)<\/h1>\s*<p>(.*)<\/p>/.exec(body) ?? []
    expect([heading, text]).toEqual(texts)
    expect(body).not.toMatch(/mallory|ada|alert|_state|_denied/)
  })
})
