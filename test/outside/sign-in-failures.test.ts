import { afterAll, describe, expect, it } from 'vitest'
import { ACCESS_TOKEN, OAUTH_CLIENT } from '../kit/authorization-server.js'
import { shared } from './fixture.js'
import { PRIVATE, type Rig, type RigOptions, startRig } from './sign-in-place.js'

const BASE_URL = 'https://app.test/x?y=1'
const UNKNOWN = 'A'.repeat(43)

/** The browser's return from the code host, which a row of the table spoils. */
interface Visit {
  readonly query: URLSearchParams
  cookie: string
}

/** What no log may say. */
const secrets = new Set([OAUTH_CLIENT.secret, encodeURIComponent(OAUTH_CLIENT.secret), ACCESS_TOKEN])

const start = (seams: RigOptions['seams'] = () => ({})): Promise<Rig> =>
  startRig({ name: 'sandbox', env: { RELAY_BASE_URL: BASE_URL }, seams })

/** Starts signing in, and lets the user agree. */
async function agreed(rig: Rig, userId: string): Promise<Visit> {
  const visit = await rig.agreed(userId)
  secrets.add(visit.query.get('code') ?? '').add(visit.cookie.replace(/^.*?=/, ''))
  return visit
}

const comeBack = (rig: Rig, { query, cookie }: Visit) =>
  rig.ask('GET', `/auth/provider/callback?${query.toString()}`, { Cookie: cookie })

/** Where a sign-in that failed returns to. */
const failed = (reason: string): string => `${BASE_URL}&auth=error&reason=${reason}`

/** What a spoiled return leaves: the sign-in, which can still be completed; the token of one that was; or nothing. */
async function leftOf(rig: Rig, visit: Visit, userId: string) {
  const { headers } = await comeBack(rig, visit)
  const code = await rig.tokenOf(userId)
  if (headers['location'] === `${BASE_URL}&auth=success&userId=${userId}`) return 'the sign-in'
  expect(headers['location']).toBe(failed('invalid_state'))
  return code === 0 ? 'the token' : 'nothing'
}

type Spoil = (rig: Rig, visit: Visit) => unknown
type Left = 'nothing' | 'the sign-in' | 'the token'

/** By reason: how often the token endpoint is asked, what spoils the return, and what is left if it is not nothing. */
const FAILURES: Record<string, Record<string, [asked: number, spoil: Spoil, leaves?: Left]>> = {
  invalid_state: {
    'a missing state': [0, (_, { query }) => query.delete('state'), 'the sign-in'],
    'an unknown state': [0, (_, { query }) => query.set('state', UNKNOWN), 'the sign-in'],
    'a state used twice': [1, (rig, visit) => comeBack(rig, visit), 'the token'],
    'another browser': [0, (_, visit) => (visit.cookie = 'other=1')],
    'another browser with a cookie of that name': [
      0,
      (_, visit) => (visit.cookie = visit.cookie.replace(/=.*/, `=${UNKNOWN}`)),
    ],
  },
  access_denied: {
    'error=access_denied': [0, (_, { query }) => (query.delete('code'), query.set('error', 'access_denied'))],
    "Gitea's bare Cancel": [
      0,
      (_, { query }) => ['code', 'state', 'iss'].forEach((name) => query.delete(name)),
    ],
  },
  exchange_failed: {
    'a refused code': [1, (_, { query }) => query.set('code', 'forged')],
    'a refused code, said with status 200': [
      1,
      ({ server }, { query }) => ((server.refusalStatus = 200), query.set('code', 'forged')),
    ],
    "a code of another sign-in, which does not fit this one's PKCE verifier": [
      1,
      async (rig, { query }) => query.set('code', (await agreed(rig, 'other')).query.get('code') ?? ''),
    ],
    'a wrong iss': [0, (_, { query }) => query.set('iss', 'https://elsewhere.test/login/oauth')],
    'a token endpoint that answers 200 with an error': [
      1,
      ({ server }) => (server.misbehave = { body: { error: 'incorrect_client_credentials' } }),
    ],
  },
  provider_unavailable: {
    'a token endpoint that answers 500': [
      1,
      ({ server }) => (server.misbehave = { status: 500, body: { error: 'server_error' } }),
    ],
    'a token endpoint that does not answer in JSON': [
      1,
      ({ server }) => (server.misbehave = { headers: { 'content-type': 'text/html' }, body: '<html>' }),
    ],
  },
}

describe('a sign-in that fails over HTTP returns to the application and keeps nothing it should not', () => {
  const rig = shared(() => start())
  afterAll(() => {
    const { relay, server } = rig
    const verifiers = server.requests.map(({ form }) => form['code_verifier'] ?? '')
    const leaked = [...secrets, ...verifiers].filter((text) => text !== '' && relay.err.includes(text))
    expect(leaked, 'secrets in the log').toEqual([])
    expect(relay.err).toContain('Sign-in failed: invalid_state')
  })

  describe.each(Object.entries(FAILURES))('%s', (reason, failures) => {
    it.each(Object.entries(failures))('%s', async (name, [asked, spoil, leaves]) => {
      const userId = name.replaceAll(/\W/g, '-')
      expect(await outcomeOf(rig, userId, spoil)).toEqual(failure(reason, asked, leaves))
    })
  })

  it('an expired state: invalid_state', async () => {
    let later = 0
    await using own = await start(() => ({ clock: () => Date.now() + later }))
    const spoil = () => (later = 600_000)
    expect(await outcomeOf(own, 'alice', spoil)).toEqual(failure('invalid_state', 0))
  })

  it('a state of another provider: invalid_state', async () => {
    await using own = await start()
    const visit = await agreed(own, 'alice')
    await own.relay.stop()
    // At the same address, but with another kind of code host.
    own.relay = await own.here.serveWith({ env: { RELAY_PROVIDER: 'gitea' } })
    const { headers } = await comeBack(own, visit)
    expect(headers['location']).toBe(failed('invalid_state'))
    expect(own.server.requests).toEqual([])
    await own.relay.stop()
    own.relay = await own.here.serve()
    expect(await leftOf(own, visit, 'alice')).toBe('nothing')
  })

  it('a token endpoint that is too slow: provider_unavailable', async () => {
    await using own = await start(() => ({ limits: { tokenEndpoint: 50 } }))
    const spoil = ({ server }: Rig) => (server.misbehave = 'hang')
    expect(await outcomeOf(own, 'alice', spoil)).toEqual(failure('provider_unavailable', 1))
  })

  it('a token endpoint that is gone: provider_unavailable', async () => {
    await using own = await start()
    const spoil = ({ server }: Rig) => server[Symbol.asyncDispose]()
    expect(await outcomeOf(own, 'alice', spoil)).toEqual(failure('provider_unavailable', 0))
  })

  it.each([
    { name: 'take the state', leaves: 'the sign-in', asked: 0 },
    { name: 'keep the token', leaves: 'nothing', asked: 1 },
  ])('a store that fails to $name: storage_failed', async ({ leaves, asked }) => {
    let works = true
    await using own = await start((server) => ({
      storage: {
        get fails() {
          return !works && server.requests.length === asked
        },
      },
    }))
    const spoil = () => (works = false)
    const heal = () => (works = true)
    expect(await outcomeOf(own, 'alice', spoil, heal)).toEqual(failure('storage_failed', asked, leaves))
  })
})

it('stores few of the sign-ins that anybody begins in a moment, and takes one again soon', async () => {
  await using rig = await start()
  const begin = () => rig.ask('GET', '/auth/provider?userId=ada')
  let begun = 0
  let refused = await begin()
  for (; refused.status === 302 && begun < 1_000; refused = await begin()) begun++
  expect(begun).toBeGreaterThanOrEqual(100)
  expect(begun).toBeLessThan(500)
  const error = 'Too many sign-ins begin at once. Try again in a moment'
  expect([refused.status, refused.headers['retry-after'], JSON.parse(refused.body)]).toEqual([
    429,
    '1',
    { error },
  ])
  await expect.poll(async () => (await begin()).status).toBe(302)
})

/** Signs in, but for what `spoil` does meanwhile: the answer, the calls to the token endpoint, and what is left. */
async function outcomeOf(rig: Rig, userId: string, spoil: Spoil, heal: () => void = () => {}) {
  const { server } = rig
  const before = server.requests.length
  const visit = await agreed(rig, userId)
  const spoiled: Visit = { query: new URLSearchParams(visit.query), cookie: visit.cookie }
  await spoil(rig, spoiled)
  const { status, headers, body } = await comeBack(rig, spoiled)
  const asked = server.requests.length - before
  Object.assign(server, { misbehave: undefined, refusalStatus: 400 })
  heal()
  const { location, 'content-type': type, 'cache-control': cache, 'referrer-policy': referrer } = headers
  const answer = { status, location, type, body, 'cache-control': cache, 'referrer-policy': referrer }
  return { answer, asked, leaves: await leftOf(rig, visit, userId) }
}

/** A failure, as {@link outcomeOf} gives it. */
function failure(reason: string, asked: number, leaves = 'nothing') {
  const answer = { status: 302, location: failed(reason), type: undefined, body: '', ...PRIVATE }
  return { answer, asked, leaves }
}
