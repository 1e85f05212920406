import { describe, expect, it } from 'vitest'
import { exchange, requestText } from '../kit/http.js'
import { JSON_TYPE, startRelay } from './auth-rig.js'

const demo = { owner: 'octo', repo: 'demo' }

describe('an action while the store fails', () => {
  it.each([
    ['comment', { ...demo, issueNumber: 1, body: 'hello' }],
    ['merge', { ...demo, pullNumber: 2 }],
    ['react', { ...demo, issueNumber: 1, content: 'heart' }],
  ])('is answered 503, and not sent to the code host: %s', async (name, action) => {
    await using relay = await startRelay()
    const { rig } = relay
    const expiresAt = rig.time.now + 60_000
    await rig.tokens.save('alice', { accessToken: 'gho_1', expiresAt, origin: rig.server.url })
    const headers = { Authorization: 'Bearer gho_1', 'Content-Type': 'application/json' }
    const request = requestText('POST', `/api/${name}`, headers, JSON.stringify(action))
    for (const method of ['list', 'get'] as const) {
      rig.broken.clear()
      rig.broken.add(method)
      const answer = await exchange(relay.port, request)
      expect([answer.status, answer.headers['content-type'], answer.body]).toEqual([
        503,
        JSON_TYPE,
        '{"error":"The store failed"}',
      ])
    }
    expect(rig.server.requests).toEqual([])
    rig.broken.clear()
    await exchange(relay.port, request)
    expect(rig.server.requests).toHaveLength(1)
  })
})
