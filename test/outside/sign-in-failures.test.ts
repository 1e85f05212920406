import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  ACCESS_TOKEN,
  type AuthorizationServer,
  authorizationServer,
  OAUTH_CLIENT,
} from '../kit/authorization-server.js'
import { Closing } from '../kit/closing.js'
import { exchange, requestText } from '../kit/http.js'
import { beginSignIn } from '../kit/pages.js'
import { hostVariables, type Place, place, type Seams, type Serving } from '../kit/place.js'

/** On every answer about signing in. */
const PRIVATE = { 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' }
const BASE_URL = 'https://app.test/x?y=1'
const UNKNOWN = 'A'.repeat(43)

/** A relay with an authorization server as its code host. Of the sandbox the issuer is known, as it is of github.com. */
interface Rig extends AsyncDisposable {
  readonly server: AuthorizationServer
  readonly here: Place
  relay: Serving
}

async function startRig(seamsOf?: (server: AuthorizationServer) => Seams): Promise<Rig> {
  await using stack = new Closing()
  const server = stack.use(await authorizationServer())
  const env = { ...hostVariables('sandbox', server.url, OAUTH_CLIENT), RELAY_BASE_URL: BASE_URL }
  const here = stack.use(await place({ host: 'none', env }))
  const relay = await here.serveWith(seamsOf ? { seams: seamsOf(server) } : {})
  const owned = stack.move()
  return { server, here, relay, [Symbol.asyncDispose]: () => owned[Symbol.asyncDispose]() }
}

/** The browser's return from the code host, which a row of the table spoils. */
interface Visit {
  readonly query: URLSearchParams
  cookie: string
}

/** What no log may say. */
const secrets = new Set([OAUTH_CLIENT.secret, encodeURIComponent(OAUTH_CLIENT.secret), ACCESS_TOKEN])

/** Starts signing in, and lets the user agree. */
async function agreed({ server, relay }: Rig, userId: string): Promise<Visit> {
  const { authorize, cookie } = await beginSignIn(`${relay.address}/auth/provider?userId=${userId}`)
  const query = server.approve(authorize)
  secrets.add(query.get('code') ?? '').add(cookie.replace(/^.*?=/, ''))
  return { query, cookie }
}

function comeBack({ relay }: Rig, { query, cookie }: Visit) {
  const port = Number(new URL(relay.address).port)
  const request = requestText('GET', `/auth/provider/callback?${query.toString()}`, { Cookie: cookie })
  return exchange(port, request)
}

/** Where a sign-in that failed returns to. */
const failed = (reason: string): string => `${BASE_URL}&auth=error&reason=${reason}`

/** What a spoiled return leaves: the sign-in, which can still be completed; the token of one that was; or nothing. */
async function leftOf(rig: Rig, visit: Visit, userId: string) {
  const { headers } = await comeBack(rig, visit)
  const token = await rig.here.run('token', '--user', userId)
  if (headers['location'] === `${BASE_URL}&auth=success&userId=${userId}`) return 'the sign-in'
  expect(headers['location']).toBe(failed('invalid_state'))
  return token.code === 0 ? 'the token' : 'nothing'
}

interface Failure {
  readonly name: string
  readonly reason: string
  /** What is there afterwards. Default: nothing. */
  readonly leaves?: 'the sign-in' | 'the token'
  /** How often the token endpoint was asked. */
  readonly asked: number
  readonly spoil: (rig: Rig, visit: Visit) => unknown
}

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
    spoil: (rig, visit) => comeBack(rig, visit),
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
    spoil: ({ server }, { query }) => ((server.refusalStatus = 200), query.set('code', 'forged')),
  },
  {
    name: "a code of another sign-in, which does not fit this one's PKCE verifier",
    reason: 'exchange_failed',
    asked: 1,
    spoil: async (rig, { query }) => query.set('code', (await agreed(rig, 'other')).query.get('code') ?? ''),
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
    spoil: ({ server }) => (server.misbehave = { status: 500, body: { error: 'server_error' } }),
  },
  {
    name: 'a token endpoint that does not answer in JSON',
    reason: 'provider_unavailable',
    asked: 1,
    spoil: ({ server }) => (server.misbehave = { headers: { 'content-type': 'text/html' }, body: '<html>' }),
  },
  {
    name: 'a token endpoint that answers 200 with an error',
    reason: 'exchange_failed',
    asked: 1,
    spoil: ({ server }) => (server.misbehave = { body: { error: 'incorrect_client_credentials' } }),
  },
]

describe('a sign-in that fails over HTTP returns to the application and keeps nothing it should not', () => {
  let rig: Rig
  beforeAll(async () => {
    rig = await startRig()
  })
  afterAll(async () => {
    const { relay, server } = rig
    const verifiers = server.requests.map(({ form }) => form['code_verifier'] ?? '')
    const leaked = [...secrets, ...verifiers].filter((text) => text !== '' && relay.err.includes(text))
    expect(leaked, 'secrets in the log').toEqual([])
    expect(relay.err).toContain('Sign-in failed: invalid_state')
    await rig[Symbol.asyncDispose]()
  })

  it.each(failures)('$name: $reason', async ({ name, reason, leaves, asked, spoil }) => {
    const userId = name.replaceAll(/\W/g, '-')
    expect(await outcomeOf(rig, userId, spoil)).toEqual(failure(reason, asked, leaves))
  })

  it('an expired state: invalid_state', async () => {
    let later = 0
    await using own = await startRig(() => ({ clock: () => Date.now() + later }))
    const spoil = () => (later = 600_000)
    expect(await outcomeOf(own, 'alice', spoil)).toEqual(failure('invalid_state', 0))
  })

  it('a state of another provider: invalid_state', async () => {
    await using own = await startRig()
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
    await using own = await startRig(() => ({ limits: { tokenEndpoint: 50 } }))
    const spoil = ({ server }: Rig) => (server.misbehave = 'hang')
    expect(await outcomeOf(own, 'alice', spoil)).toEqual(failure('provider_unavailable', 1))
  })

  it('a token endpoint that is gone: provider_unavailable', async () => {
    await using own = await startRig()
    const spoil = ({ server }: Rig) => server[Symbol.asyncDispose]()
    expect(await outcomeOf(own, 'alice', spoil)).toEqual(failure('provider_unavailable', 0))
  })

  it.each([
    { name: 'take the state', leaves: 'the sign-in', asked: 0 },
    { name: 'keep the token', leaves: 'nothing', asked: 1 },
  ])('a store that fails to $name: storage_failed', async ({ leaves, asked }) => {
    let works = true
    await using own = await startRig((server) => ({
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

/** Signs in, but for what `spoil` does meanwhile: the answer, the calls to the token endpoint, and what is left. */
async function outcomeOf(rig: Rig, userId: string, spoil: Failure['spoil'], heal: () => void = () => {}) {
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
