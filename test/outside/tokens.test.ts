import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { emptyFolder } from '../kit/folder.js'
import { CLIENT, type Place, place } from '../kit/place.js'
import { receiver } from '../kit/receiver.js'
import { fails, prints } from '../kit/run.js'

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

  it('may not name another client, exit 2', async () => {
    await using here = await place({ signedIn: true })
    const { pid } = await here.serve()
    const env = { RELAY_CLIENT_ID: 'abc', RELAY_CLIENT_SECRET: 'def' }
    expect(await here.runWith({ env }, ...COMMENT)).toEqual(
      fails(
        2,
        `RELAY_CLIENT_ID is abc, but process ${pid} serves profile default with the OAuth client ${CLIENT.id}. Unset the variable, or name another profile with --profile`,
      ),
    )
  })

  it('hears why the instance could not renew, exit 4', async () => {
    await using both = await withToken(ENDED, true)
    const { here } = both
    const headers = { 'Content-Type': 'application/json' }
    const body = '{"error":"bad_refresh_token"}'
    here.sandbox.faults.next('token', { kind: 'answer', status: 200, headers, body })
    expect(await here.runWith({ env: NO_CLIENT }, ...COMMENT)).toEqual(
      fails(
        4,
        'The token of ada could not be renewed (the provider answered bad_refresh_token); sign in again: relay login',
      ),
    )
    expect(await here.runWith({ env: NO_CLIENT }, ...COMMENT, '--user', 'bob')).toEqual(
      fails(4, 'bob is not signed in, or the sign-in has ended. Run relay login'),
    )
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
    expect(await here.runWith({ env, cwd }, ...COMMENT)).toEqual(
      fails(
        4,
        `The token of ada is from ${here.sandbox.url} and is not sent to ${evil.url}; sign in again: relay login`,
      ),
    )
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
    expect(ran).toEqual(prints(`${here.sandbox.url}/octo/demo/issues/1#issuecomment-${id}\n`))
    expect(squatter.received.filter(({ method }) => method !== 'GET')).toEqual([])
    expect(JSON.stringify(squatter.received)).not.toContain(token)
  })
})
