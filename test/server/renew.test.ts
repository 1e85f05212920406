import { describe, expect, it } from 'vitest'
import { RelayError } from '../../src/base/errors.js'
import { silentLog } from '../../src/base/log.js'
import { createRouter } from '../../src/http/router.js'
import { prove, renewalText, type InstanceRecord } from '../../src/instance/running.js'
import { healthRoutes } from '../../src/server/routes/health.js'
import { renewRoutes } from '../../src/server/routes/renew.js'

const ROW: InstanceRecord = {
  v: 1,
  pid: 1,
  url: 'http://127.0.0.1:1',
  provider: 'github',
  providerUrl: 'https://github.com',
  publicUrl: 'http://127.0.0.1:1',
  key: Buffer.alloc(32, 7).toString('base64url'),
  startedAt: '2026-01-01T00:00:00.000Z',
}
const NOT_FOUND = [404, { error: 'Not found' }]

/** An application with or without an instance, and the users whose tokens it was asked to renew. */
function service(row?: InstanceRecord, failure?: RelayError) {
  const renewed: string[] = []
  const parts = {
    prove: (text: string) => row && prove(row, text),
    renew: async (userId: string) => {
      renewed.push(userId)
      if (failure) throw failure
    },
    revoke: async () => ({ removed: true, upstream: 'revoked' }) as const,
  }
  const app = createRouter({ hostAllowed: () => true, log: silentLog })
    .route('/', healthRoutes(parts))
    .route('/', renewRoutes(parts))
  return {
    renewed,
    app,
    ask: async (userId: string, proof?: string) => {
      const headers = proof === undefined ? {} : { 'X-Relay-Proof': proof }
      const answer = await app.request(`/instance/renew/${encodeURIComponent(userId)}`, {
        method: 'POST',
        headers,
      })
      return [answer.status, await answer.json()]
    },
  }
}

const proofFor = (userId: string): string => prove(ROW, renewalText(userId))

describe('POST /instance/renew/:userId', () => {
  it.each(['ada', 'Ünï😀', 'a+b%41'])(
    'renews for a caller with the key of the instance: %s',
    async (userId) => {
      const { ask, renewed } = service(ROW)
      expect(await ask(userId, proofFor(userId))).toEqual([200, { ok: true }])
      expect(renewed).toEqual([userId])
    },
  )

  it.each([
    ['no proof', undefined],
    ['an empty one', ''],
    ['one for another user', proofFor('bob')],
    ['one of another instance', prove({ ...ROW, key: 'A'.repeat(43) }, renewalText('ada'))],
    ['half of one', proofFor('ada').slice(0, 32)],
    ['the answer to a challenge', prove(ROW, 'ada')],
  ])('is not there for %s', async (_, proof) => {
    const { ask, renewed } = service(ROW)
    expect(await ask('ada', proof)).toEqual(NOT_FOUND)
    expect(renewed).toEqual([])
  })

  it('is not there where no instance runs', async () => {
    expect(await service().ask('ada', proofFor('ada'))).toEqual(NOT_FOUND)
    expect(await service().ask('ada', '')).toEqual(NOT_FOUND)
  })

  it('has no proof that GET /health would give away', async () => {
    const { app } = service(ROW)
    const challenge = renewalText('a-user-of-some-length')
    const answer = await app.request('/health', { headers: { 'X-Relay-Challenge': challenge } })
    expect([answer.status, answer.headers.get('x-relay-instance')]).toEqual([200, null])
  })

  it('names the reason why a token was not renewed', async () => {
    const failure = new RelayError('unauthenticated', 'ada is not signed in; sign in: relay login')
    expect(await service(ROW, failure).ask('ada', proofFor('ada'))).toEqual([401, { error: failure.message }])
    expect(await service(ROW).ask('a b', proofFor('a b'))).toEqual([400, { error: 'Invalid userId' }])
  })
})
