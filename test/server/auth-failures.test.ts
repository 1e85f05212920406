import { describe, expect, it } from 'vitest'
import type { OAuthOptions } from '../../src/oauth/oauth.js'
import { answerJson, answerText } from '../helpers/authorization-server.js'
import { brief, PRIVATE, type Relay, startRelay } from './auth-rig.js'

/** The browser's return from the provider, which a row of the table spoils. */
interface Visit {
  readonly query: URLSearchParams
  cookie: string
}

interface Failure {
  readonly name: string
  readonly reason: string
  /** What is in the store afterwards. Default: nothing. */
  readonly leaves?: 'the sign-in' | 'the token'
  /** How often the token endpoint was asked. */
  readonly asked: number
  readonly options?: Partial<OAuthOptions>
  readonly spoil: (relay: Relay, visit: Visit) => unknown
}

const UNKNOWN = 'A'.repeat(43)

const failures: Failure[] = [
  {
    name: 'a missing state',
    reason: 'invalid_state',
    leaves: 'the sign-in',
    asked: 0,
    spoil: (_, { query }) => query.delete('state'),
  },
  {
    name: 'an unknown state',
    reason: 'invalid_state',
    leaves: 'the sign-in',
    asked: 0,
    spoil: (_, { query }) => query.set('state', UNKNOWN),
  },
  {
    name: 'a state used twice',
    reason: 'invalid_state',
    leaves: 'the token',
    asked: 1,
    spoil: (relay, visit) => comeBack(relay, visit),
  },
  {
    name: 'an expired state',
    reason: 'invalid_state',
    asked: 0,
    spoil: ({ rig }) => (rig.time.now += 600_000),
  },
  {
    name: 'another browser',
    reason: 'invalid_state',
    asked: 0,
    spoil: (_, visit) => (visit.cookie = 'other=1'),
  },
  {
    name: 'another browser with a cookie of that name',
    reason: 'invalid_state',
    asked: 0,
    spoil: (_, visit) => (visit.cookie = visit.cookie.replace(/=.*/, `=${UNKNOWN}`)),
  },
  {
    name: 'a state of another provider',
    reason: 'invalid_state',
    asked: 0,
    spoil: ({ rig }, { query }) => change(rig, query, { provider: 'gitea' }),
  },
  {
    name: 'error=access_denied',
    reason: 'access_denied',
    asked: 0,
    spoil: (_, { query }) => (query.delete('code'), query.set('error', 'access_denied')),
  },
  {
    name: "Gitea's bare Cancel",
    reason: 'access_denied',
    asked: 0,
    spoil: (_, { query }) => ['code', 'state', 'iss'].forEach((name) => query.delete(name)),
  },
  {
    name: 'a refused code',
    reason: 'exchange_failed',
    asked: 1,
    spoil: (_, { query }) => query.set('code', 'forged'),
  },
  {
    name: 'a refused code, said with status 200',
    reason: 'exchange_failed',
    asked: 1,
    spoil: ({ rig }, { query }) => ((rig.server.refusalStatus = 200), query.set('code', 'forged')),
  },
  {
    name: 'a wrong PKCE verifier',
    reason: 'exchange_failed',
    asked: 1,
    spoil: ({ rig }, { query }) => change(rig, query, { verifier: UNKNOWN }),
  },
  {
    name: 'a wrong iss',
    reason: 'exchange_failed',
    asked: 0,
    spoil: (_, { query }) => query.set('iss', 'https://elsewhere.test/login/oauth'),
  },
  {
    name: 'a token endpoint that answers 500',
    reason: 'provider_unavailable',
    asked: 1,
    spoil: ({ rig }) => (rig.server.misbehave = answerJson(500, { error: 'server_error' })),
  },
  {
    name: 'a token endpoint that is too slow',
    reason: 'provider_unavailable',
    asked: 1,
    options: { exchangeTimeout: 50 },
    spoil: ({ rig }) => (rig.server.misbehave = () => {}),
  },
  {
    name: 'a token endpoint that does not answer in JSON',
    reason: 'provider_unavailable',
    asked: 1,
    spoil: ({ rig }) => (rig.server.misbehave = answerText(200, '<html>')),
  },
  {
    name: 'a token endpoint that is gone',
    reason: 'provider_unavailable',
    asked: 0,
    spoil: ({ rig }) => rig.server[Symbol.asyncDispose](),
  },
  {
    name: 'a token endpoint that answers 200 with an error',
    reason: 'exchange_failed',
    asked: 1,
    spoil: ({ rig }) => (rig.server.misbehave = answerJson(200, { error: 'incorrect_client_credentials' })),
  },
  {
    name: 'a store that fails to take the state',
    reason: 'storage_failed',
    leaves: 'the sign-in',
    asked: 0,
    spoil: ({ rig }) => rig.broken.add('take'),
  },
  {
    name: 'a store that fails to keep the token',
    reason: 'storage_failed',
    asked: 1,
    spoil: ({ rig }) => rig.broken.add('write').add('put'),
  },
]

/** Changes what was remembered of the sign-in. */
async function change({ parts }: Relay['rig'], query: URLSearchParams, fields: object): Promise<void> {
  const key = `oauth-state:${query.get('state')}`
  await parts.store.put(key, { ...Object(await parts.store.get(key)), ...fields })
}

function comeBack(relay: Relay, { query, cookie }: Visit) {
  return relay.ask('GET', `/auth/sandbox/callback?${query.toString()}`, { Cookie: cookie })
}

const KEYS = {
  'the sign-in': [expect.stringMatching(/^oauth-state:/)],
  'the token': [
    expect.stringMatching(/^bearer:[\da-f]{64}:alice$/),
    'origin:alice',
    'token:alice',
    'unconfirmed:alice',
  ],
}

describe('a sign-in that fails over HTTP returns to the application and keeps nothing it should not', () => {
  it.each(failures)('$name: $reason', async ({ reason, leaves, asked, options, spoil }) => {
    // Of the sandbox the issuer is known, as it is of github.com.
    await using relay = await startRelay({ name: 'sandbox', baseUrl: 'https://app.test/x?y=1', ...options })
    const visit = await relay.agreed()
    await spoil(relay, visit)
    const answer = await comeBack(relay, visit)
    expect({ ...brief(answer), location: answer.headers['location'] }).toEqual({
      status: 302,
      type: undefined,
      body: '',
      ...PRIVATE,
      location: `https://app.test/x?y=1&auth=error&reason=${reason}`,
    })
    expect(Object.keys(await relay.rig.contents())).toEqual(leaves ? KEYS[leaves] : [])
    expect(relay.rig.server.requests).toHaveLength(asked)
  })
})
