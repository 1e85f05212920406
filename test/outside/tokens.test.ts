import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { emptyFolder, type Env } from '../kit/folder.js'
import { addressOf, beginSignIn, endToken } from '../kit/pages.js'
import { CLIENT, hostVariables, type Place, place } from '../kit/place.js'
import { type Received, type Receiver, receiver } from '../kit/receiver.js'

const COMMENT = ['comment', 'octo/demo#1', 'hello']
const TOKEN_PATH = '/login/oauth/access_token'

/** A terminal that has not the OAuth application. */
const NO_CLIENT = { RELAY_CLIENT_ID: undefined, RELAY_CLIENT_SECRET: undefined }

interface WithToken extends AsyncDisposable {
  readonly here: Place
  /** The token of the sign-in, which was renewed since. */
  readonly first: string
  /** How often the token endpoint was asked since. */
  readonly renewals: () => number
}

/** A place whose user has a token that lives so many seconds, and a refresh token; later tokens live an hour. */
async function withToken(lives: number, serves = false): Promise<WithToken> {
  const lifetimes = { access: 30, refresh: 86_400 }
  const here = await place({ sandbox: { lifetimes } })
  if (serves) await here.serve()
  const first = await here.signIn()
  lifetimes.access = lives
  // Renews it, since it ends within a minute.
  await here.run('token')
  lifetimes.access = 3600
  const calls = (): number => here.sandbox.requests.filter((call) => call.path === TOKEN_PATH).length
  const before = calls()
  return {
    here,
    first,
    renewals: () => calls() - before,
    [Symbol.asyncDispose]: () => here[Symbol.asyncDispose](),
  }
}

/** Seconds: it has ended when a command looks. */
const ENDED = 0.001

describe('a second terminal without the client secret', () => {
  it.each([
    ['has ended', ENDED],
    ['ends within a minute', 30],
  ])('has the instance renew a token that %s, once', async (_, lives) => {
    await using both = await withToken(lives, true)
    const { here, first, renewals } = both
    expect(await here.runWith({ env: NO_CLIENT }, ...COMMENT)).toMatchObject({ code: 0, err: '' })
    const { out } = await here.runWith({ env: NO_CLIENT }, 'token')
    expect(out).toMatch(/^gho_\w+\n$/)
    expect(out).not.toContain(first)
    expect(renewals()).toBe(1)
  })

  it('asks nothing of the instance for a token that lives on', async () => {
    await using both = await withToken(3600, true)
    expect(await both.here.runWith({ env: NO_CLIENT }, ...COMMENT)).toMatchObject({ code: 0, err: '' })
    expect(both.renewals()).toBe(0)
  })

  it('may have the client id, as from relay.json', async () => {
    await using both = await withToken(ENDED, true)
    const cwd = emptyFolder()
    writeFileSync(path.join(cwd, 'relay.json'), '{"clientId":"abc"}')
    const ran = await both.here.runWith({ cwd, env: NO_CLIENT }, ...COMMENT)
    expect(ran).toMatchObject({ code: 0, err: '' })
    expect(both.renewals()).toBe(1)
  })

  it('may not name another client, exit 2', async () => {
    await using here = await place({ signedIn: true })
    const { pid } = await here.serve()
    const env = { RELAY_CLIENT_ID: 'abc', RELAY_CLIENT_SECRET: 'def' }
    expect(await here.runWith({ env }, ...COMMENT)).toEqual({
      code: 2,
      out: '',
      err: `error: RELAY_CLIENT_ID is abc, but process ${pid} serves profile default with the OAuth client ${CLIENT.id}. Unset the variable, or name another profile with --profile\n`,
    })
  })

  it('hears why the instance could not renew, exit 4', async () => {
    await using both = await withToken(ENDED, true)
    const { here } = both
    const headers = { 'Content-Type': 'application/json' }
    const body = '{"error":"bad_refresh_token"}'
    here.sandbox.faults.next('token', { kind: 'answer', status: 200, headers, body })
    expect(await here.runWith({ env: NO_CLIENT }, ...COMMENT)).toEqual({
      code: 4,
      out: '',
      err: 'error: The token of ada could not be renewed (the provider answered bad_refresh_token); sign in again: relay login\n',
    })
    expect(await here.runWith({ env: NO_CLIENT }, ...COMMENT, '--user', 'bob')).toEqual({
      code: 4,
      out: '',
      err: 'error: bob is not signed in, or the sign-in has ended. Run relay login\n',
    })
  })

  it('names what is missing when no instance runs, exit 4', async () => {
    await using both = await withToken(ENDED)
    const { code, err } = await both.here.runWith({ env: NO_CLIENT }, ...COMMENT)
    expect({ code, err }).toEqual({
      code: 4,
      err: 'error: The token of ada has ended; renewing it needs RELAY_CLIENT_ID and RELAY_CLIENT_SECRET; sign in again: relay login\n',
    })
  })
})

describe('the token', () => {
  it('is needed, exit 4', async () => {
    await using here = await place({ signedIn: true })
    const err = 'error: bob is not signed in, or the sign-in has ended. Run relay login\n'
    expect(await here.run(...COMMENT, '--user', 'bob')).toEqual({ code: 4, out: '', err })
    const env = { RELAY_USER: 'bob' }
    expect(await here.runWith({ env }, ...COMMENT)).toEqual({ code: 4, out: '', err })
  })

  it('that the code host no longer accepts needs a new sign-in, exit 4', async () => {
    await using here = await place()
    await endToken(here.sandbox.url, CLIENT, await here.useToken())
    expect(await here.run(...COMMENT)).toEqual({
      code: 4,
      out: '',
      err: `error: Invalid or expired token for ada at ${here.sandbox.url}: run relay login\n`,
    })
  })

  it('that has ended is renewed first', async () => {
    await using alone = await withToken(ENDED)
    const { here, first, renewals } = alone
    expect(await here.run(...COMMENT, '--dry-run')).toMatchObject({ code: 0 })
    expect(renewals()).toBe(0)
    expect(await here.run(...COMMENT)).toMatchObject({ code: 0, err: '' })
    expect(here.sandbox.comments).toHaveLength(1)
    const { code, out } = await here.run('token')
    expect({ code, renewals: renewals() }).toEqual({ code: 0, renewals: 1 })
    expect(out).not.toContain(first)
  })

  it.each([
    ['.env', (url: string) => `RELAY_PROVIDER_URL=${url}\n`],
    ['relay.json', (url: string) => JSON.stringify({ providerUrl: url })],
  ])('never goes to another code host that a %s in the working folder names, exit 4', async (file, text) => {
    await using here = await place({ signedIn: true })
    await using evil = await receiver({ status: 201, body: { id: 1, html_url: 'https://evil' } })
    const cwd = emptyFolder()
    writeFileSync(path.join(cwd, file), text(evil.url))
    const env = { ...NO_CLIENT, RELAY_PROVIDER_URL: undefined }
    expect(await here.runWith({ env, cwd }, ...COMMENT)).toEqual({
      code: 4,
      out: '',
      err: `error: The token of ada is from ${here.sandbox.url} and is not sent to ${evil.url}; sign in again: relay login\n`,
    })
    expect(evil.received).toEqual([])
    expect(here.sandbox.comments).toEqual([])
  })

  it('is never sent to another program on the port of the instance', async () => {
    await using here = await place()
    const token = await here.useToken()
    const killed = await here.serveWith({ built: true })
    await killed.stop('SIGKILL')
    const port = Number(new URL(killed.address).port)
    const headers = { 'X-Relay-Instance': '0'.repeat(64) }
    const body = { ok: true, id: 1, url: 'https://evil.example' }
    await using squatter = await receiver({ headers, body }, { port })
    const ran = await here.run(...COMMENT)
    const id = here.sandbox.comments.at(-1)?.id
    expect(ran).toEqual({
      code: 0,
      out: `${here.sandbox.url}/octo/demo/issues/1#issuecomment-${id}\n`,
      err: '',
    })
    expect(squatter.received.filter(({ method }) => method !== 'GET')).toEqual([])
    expect(JSON.stringify(squatter.received)).not.toContain(token)
  })
})

const CANARY = 'canary-client-secret'

interface CodeHost extends Receiver {
  /** Seconds that the next tokens live; undefined: they do not end. */
  lives: number | undefined
}

/** A code host that gives a token to anybody. */
async function codeHost(): Promise<CodeHost> {
  const server = await receiver(({ path: asked }) => {
    const grant = { access_token: 'gho_1', token_type: 'bearer', scope: '' }
    const ends = host.lives === undefined ? {} : { expires_in: host.lives, refresh_token: 'refresh' }
    if (asked.includes('access_token')) return { body: { ...grant, ...ends } }
    return asked.endsWith('/user') ? { body: { login: 'octo' } } : { status: 204 }
  })
  const host: CodeHost = Object.assign(server, { lives: undefined })
  return host
}

/** A folder with the client in `.env`, and the code host's address where `where` says. */
function folder(where: string, url: string): string {
  const cwd = emptyFolder()
  const client = `RELAY_CLIENT_ID=client\nRELAY_CLIENT_SECRET=${CANARY}\n`
  const inDotenv = where === '.env' ? `RELAY_PROVIDER=sandbox\nRELAY_PROVIDER_URL=${url}\n` : ''
  writeFileSync(path.join(cwd, '.env'), client + inDotenv)
  if (where === 'relay.json')
    writeFileSync(path.join(cwd, where), JSON.stringify({ provider: 'sandbox', providerUrl: url }))
  return cwd
}

/** A browser that signs in without a person, as a code host could have it. */
async function visit(address: string): Promise<void> {
  const { authorize, cookie } = await beginSignIn(address)
  const { searchParams } = new URL(authorize)
  const back = `${searchParams.get('redirect_uri')}?code=1&state=${searchParams.get('state')}`
  await fetch(back, { headers: { cookie }, redirect: 'manual' })
}

/** Signs in there; the token has ended, and can be renewed. */
async function signInAt(here: Place, host: CodeHost): Promise<void> {
  host.lives = ENDED
  const env = hostVariables('sandbox', host.url, { id: 'client', secret: CANARY })
  await using login = here.startWith({ env }, 'login', '--no-browser')
  await visit(await addressOf(login))
  await login.ended
  host.lives = undefined
}

/** Renews a token that has ended, signs in, and revokes the token; gives the exit codes, stderr, and the calls with the secret. */
async function useSecret(cwd: string, host: CodeHost, env: Env = {}) {
  await using here = await place({ host: 'none', env: { RELAY_PORT: '0' } })
  await signInAt(here, host)
  const before = host.received.length
  const token = await here.runWith({ cwd, env }, 'token')
  await using running = here.startWith({ cwd, env }, 'login', '--no-browser')
  // It ends without an address where it is refused.
  await addressOf(running).then(visit, () => undefined)
  const login = await running.ended
  const revoke = await here.runWith({ cwd, env }, 'revoke')
  const received = host.received.slice(before)
  const rans = [token, login, revoke]
  return { codes: rans.map(({ code }) => code), errors: rans.map(({ err }) => err), received }
}

/** The calls that the secret was in, however it was written there. */
function withSecret(received: readonly Received[]): string[] {
  const basic = Buffer.from(`client:${CANARY}`).toString('base64')
  return received
    .filter(({ headers, body }) =>
      [CANARY, basic].some((text) => JSON.stringify([headers, body.toString()]).includes(text)),
    )
    .map(({ method, path: asked }) => `${method} ${asked}`)
}

describe('a client secret in .env', () => {
  it.each(['relay.json', '.env'])('goes to no code host that only %s names, exit 2', async (where) => {
    await using host = await codeHost()
    const { codes, errors, received } = await useSecret(folder(where, host.url), host)
    expect({ codes, received }).toEqual({ codes: [2, 2, 2], received: [] })
    for (const text of errors)
      expect(text).toMatch(
        /^error: RELAY_CLIENT_SECRET in \.env is not sent to an address that only this folder/,
      )
    expect(errors.join('')).not.toContain(CANARY)
  })

  it('goes to the one that the user names, when signing in, renewing and revoking', async () => {
    await using host = await codeHost()
    const cwd = folder('relay.json', host.url)
    const { codes, received } = await useSecret(cwd, host, { RELAY_PROVIDER_URL: host.url })
    expect({ codes, calls: withSecret(received) }).toEqual({
      codes: [0, 0, 0],
      calls: [
        'POST /login/oauth/access_token',
        'POST /login/oauth/access_token',
        'DELETE /api/v3/applications/client/token',
      ],
    })
  })
})

describe('invalid settings', () => {
  it.each([
    [{ RELAY_PROVIDER: 'gitea' }, /^error: RELAY_PROVIDER_URL is not set/],
    [{ RELAY_PROVIDER_URL: 'http://git.example' }, /^error: The provider's address must be https/],
    [{ RELAY_USER: 'a b' }, /^error: RELAY_USER: must be 1–256 bytes without white space/],
  ])('%j, exit 2', async (env, message) => {
    await using here = await place({ host: 'none', env })
    const { code, out, err } = await here.run(...COMMENT)
    expect({ code, out }).toEqual({ code: 2, out: '' })
    expect(err).toMatch(message)
  })

  it('the profile of a sandbox that does not run, exit 1', async () => {
    await using here = await place({ host: 'none', env: { RELAY_PROFILE: 'sandbox' } })
    const err = 'error: The sandbox is not running. Start it with relay serve --sandbox\n'
    expect(await here.run(...COMMENT)).toEqual({ code: 1, out: '', err })
  })

  it('a data folder that cannot be made, exit 2', async () => {
    const home = path.join(emptyFolder(), 'file')
    writeFileSync(home, '')
    const env = { RELAY_HOME: home, RELAY_CLIENT_ID: 'id', RELAY_CLIENT_SECRET: 'secret' }
    await using here = await place({ host: 'none', env })
    const { code, out, err } = await here.run('login')
    expect({ code, out }).toEqual({ code: 2, out: '' })
    expect(err).toContain(`error: The folder ${home} cannot be made: it is not a folder`)
  })
})
