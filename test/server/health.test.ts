import { describe, expect, it } from 'vitest'
import { healthRoutes } from '../../src/server/routes/health.js'
import { startRelay } from './auth-rig.js'

const CHALLENGE = 'q83vASNFZ4mrze8BI0VniQ'
const app = healthRoutes({ prove: (challenge) => `proof of ${challenge}` })

async function health(headers: Record<string, string> = {}, routes = app) {
  const response = await routes.request('/health', { headers })
  return {
    status: response.status,
    headers: Object.fromEntries(response.headers),
    body: await response.text(),
  }
}

const plain = { status: 200, headers: { 'content-type': 'application/json' }, body: '{"status":"ok"}' }

describe('GET /health', () => {
  it('is answered over HTTP', async () => {
    await using relay = await startRelay()
    expect(await relay.ask('GET', '/health')).toEqual({
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
    })
  })

  it('shows that the service is running', async () => {
    expect(await health()).toEqual(plain)
  })

  it('proves the instance to a caller that asks', async () => {
    expect(await health({ 'X-Relay-Challenge': CHALLENGE })).toEqual({
      ...plain,
      headers: { ...plain.headers, 'x-relay-instance': `proof of ${CHALLENGE}` },
    })
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

  it('proves nothing where no instance runs', async () => {
    const routes = healthRoutes({ prove: () => undefined })
    expect(await health({ 'X-Relay-Challenge': CHALLENGE }, routes)).toEqual(plain)
  })
})
