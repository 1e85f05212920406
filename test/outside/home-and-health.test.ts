import { describe, expect, it } from 'vitest'
import { exchange, requestText } from '../kit/http.js'
import { faulty, place } from '../kit/place.js'
import { smee } from '../kit/smee.js'
import { shared } from './fixture.js'

const here = shared(() => place({ host: 'none' }))
const relay = shared(() => here.serve())

const CHALLENGE = 'q83vASNFZ4mrze8BI0VniQ'

describe('GET /health', () => {
  const health = (headers: Record<string, string> = {}, { port } = relay) =>
    exchange(port, requestText('GET', '/health', headers))
  const plain = {
    status: 200,
    headers: {
      'content-type': 'application/json',
      'content-length': '15',
      'x-request-id': expect.stringMatching(/^[\da-f-]{36}$/),
      date: expect.any(String),
      connection: 'keep-alive',
      'keep-alive': 'timeout=620',
    },
    body: '{"status":"ok"}',
  }

  it('shows that the service is running', async () => {
    expect(await health()).toEqual(plain)
  })

  it('proves the instance to a caller that asks', async () => {
    await using other = await place({ host: 'none' })
    const stranger = await other.serve()
    const answers = [
      await health({ 'X-Relay-Challenge': CHALLENGE }),
      await health({ 'X-Relay-Challenge': CHALLENGE }),
      await health({ 'X-Relay-Challenge': `${CHALLENGE}A` }),
      await health({ 'X-Relay-Challenge': CHALLENGE }, stranger),
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
    ...[' ', ', '].map((between) => CHALLENGE + between + CHALLENGE),
    `é${CHALLENGE}`,
  ])('proves nothing to the challenge %j', async (challenge) => {
    expect(await health({ 'X-Relay-Challenge': challenge })).toEqual(plain)
  })
})

const RUNNING = ['relay is running', 'This address receives webhooks and signs users in.']
const STORED = 'relay has stored your access token and can act for you at the code host.'

/** What a query says, and the heading and first sentence of the page for it. */
const OUTCOMES: Readonly<Record<string, string | readonly string[]>> = {
  '': RUNNING,
  '?auth=maybe&reason=access_denied': RUNNING,
  '?auth=success&auth=error': RUNNING,
  '?auth=success&userId=ada': ['You are signed in', STORED],
  '?auth=error&reason=invalid_state':
    'This sign-in had expired, was used before, or began in another browser.',
  '?auth=error&reason=access_denied': 'The code host reports that access was not granted.',
  '?auth=error&reason=provider_unavailable':
    'The code host could not be reached, or did not answer as it should.',
  '?auth=error&reason=exchange_failed': 'The code host did not give relay an access token.',
  '?auth=error&reason=storage_failed': 'relay could not store your access token.',
  '?auth=error': 'Signing in did not succeed.',
  '?auth=error&reason=%3Cscript%3Ealert(1)%3C/script%3E&userId=mallory': 'Signing in did not succeed.',
}

describe('GET /', () => {
  it.each(Object.entries(OUTCOMES))(
    'for %j is one fixed page that may run and load nothing',
    async (query, texts) => {
      const { status, headers, body } = await exchange(relay.port, requestText('GET', `/${query}`))
      expect(status).toBe(200)
      expect(headers).toMatchObject({
        'content-type': 'text/html; charset=utf-8',
        'content-security-policy': expect.stringMatching(
          /^default-src 'none'; style-src 'sha256-[^']+'; form-action 'none';/,
        ),
        'cache-control': 'no-store',
      })
      const [, heading, text] = /<h1>(.*)<\/h1>\s*<p>(.*)<\/p>/.exec(body) ?? []
      expect([heading, text]).toEqual(typeof texts === 'string' ? ['You are not signed in', texts] : texts)
      expect(body).not.toMatch(/mallory|ada|alert|_state|_denied/)
    },
  )
})

describe('the page of a running relay', () => {
  const links = async (address: string): Promise<unknown[]> => {
    const page = await (await fetch(address)).text()
    return [...page.matchAll(/<code>(.*)<\/code>|href="(.*)"/g)].map(([, code, link]) => code ?? link)
  }

  it('has the payload URL, the inspector and the sandbox', async () => {
    await using here = await place({})
    const relay = await here.serve()
    const found = [`${relay.address}/webhook`, '/inspect/', here.sandbox.url]
    expect(await links(relay.address)).toEqual(found)
    expect(await links(`${relay.address}/?auth=success`)).toEqual([])
  })

  it('has the public address, and no more than there is', async () => {
    await using here = await place({ host: 'none' })
    const relay = await here.serve('--no-inspect', '--public-url', 'https://relay.example')
    expect(await links(relay.address)).toEqual(['https://relay.example/webhook'])
  })

  it('does not name the channel of a tunnel, which whoever knows it can read', async () => {
    await using tunnel = await smee()
    await using here = await place({ host: 'none' })
    const relay = await here.serve('--tunnel', tunnel.channel)
    expect(await links(relay.address)).toEqual(['/inspect/'])
  })
})

async function ready({ address }: { readonly address: string }): Promise<unknown> {
  const response = await fetch(`${address}/ready`)
  return { status: response.status, body: await response.json() }
}

const READY = { status: 200, body: { status: 'ready' } }
const AWAY = { status: 503, body: { error: 'Deliveries cannot be stored' } }

describe('GET /ready of a running relay', () => {
  it('is 503 while its disk is ill, without a delivery that fails first, and 200 again afterwards', async ({
    expect,
  }) => {
    const storage = faulty()
    await using here = await place({ host: 'none' })
    const relay = await here.serveWith({ seams: { storage } })
    expect(await ready(relay)).toEqual(READY)
    storage.now('fails')
    await expect.poll(() => ready(relay)).toEqual(AWAY)
    expect(await (await fetch(`${relay.address}/health`)).text()).toBe('{"status":"ok"}')
    expect((await relay.deliver()).status).toBe(503)
    storage.now('works')
    await expect.poll(() => ready(relay)).toEqual(READY)
    expect((await relay.deliver()).status).toBe(200)
    expect(relay.err.match(/\/ready answers .*/g)).toEqual([
      expect.stringMatching(/^\/ready answers 503: ./),
      '/ready answers 200 again',
    ])
    expect((await relay.stop()).code).toBe(0)
  })

  it('turns 503 before relay stops taking deliveries, where a load balancer asks', async () => {
    await using here = await place({ host: 'none' })
    // A process, which ends with the place before the 5 s are over.
    const relay = await here.serveWith({ built: true })
    expect(await ready(relay)).toEqual(READY)
    relay.kill('SIGTERM')
    await relay.says('/ready answers 503 for 5 s')
    expect(await ready(relay)).toEqual({ status: 503, body: { error: 'relay is stopping' } })
    expect((await relay.deliver()).status).toBe(200)
  })
})
