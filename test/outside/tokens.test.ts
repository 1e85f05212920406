import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { emptyFolder } from '../kit/folder.js'
import { endToken } from '../kit/pages.js'
import { CLIENT, place } from '../kit/place.js'
import { receiver } from '../kit/receiver.js'
import { fails, prints } from '../kit/run.js'
import { json, notes } from './fixture.js'

const COMMENT = ['comment', 'octo/demo#1', 'hello']
const NOT_BOB = 'bob is not signed in, or the sign-in has ended. Run relay login'
const TOKEN_PATH = '/login/oauth/access_token'

/** A terminal that has not the OAuth application. */
const NO_CLIENT = { RELAY_CLIENT_ID: undefined, RELAY_CLIENT_SECRET: undefined }

/**
 * A place whose user has a token that lives so many seconds, and a refresh token; later tokens live an hour. `first` is the token
 * of the sign-in, which was renewed since, and `renewals` how often the token endpoint was asked since.
 */
async function withToken(lives: number, serves = false) {
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
  const dispose = { [Symbol.asyncDispose]: () => here[Symbol.asyncDispose]() }
  return { here, first, renewals: () => calls() - before, ...dispose }
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
    const serves = `process ${pid} serves profile default with the OAuth client ${CLIENT.id}`
    const advice = 'Unset the variable, or name another profile with --profile'
    const other = `RELAY_CLIENT_ID is abc, but ${serves}. ${advice}`
    expect(await here.runWith({ env }, ...COMMENT)).toEqual(fails(2, other))
  })

  it('hears why the instance could not renew, exit 4', async () => {
    await using both = await withToken(ENDED, true)
    const { here } = both
    const headers = { 'Content-Type': 'application/json' }
    const body = '{"error":"bad_refresh_token"}'
    here.sandbox.faults.next('token', { kind: 'answer', status: 200, headers, body })
    const why =
      'The token of ada could not be renewed (the provider answered bad_refresh_token). Run relay login'
    expect(await here.runWith({ env: NO_CLIENT }, ...COMMENT)).toEqual(fails(4, why))
    expect(await here.runWith({ env: NO_CLIENT }, ...COMMENT, '--user', 'bob')).toEqual(
      fails(4, `${NOT_BOB} --user bob`),
    )
  })

  it('names what is missing when no instance runs, exit 4', async () => {
    await using both = await withToken(ENDED)
    const needs =
      'The token of ada has ended; renewing it needs RELAY_CLIENT_ID and RELAY_CLIENT_SECRET. Run relay setup'
    expect(await both.here.runWith({ env: NO_CLIENT }, ...COMMENT)).toEqual(fails(4, needs))
  })
})

describe('the token', () => {
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
    const from = `The token of ada is from ${here.sandbox.url} and is not sent to ${evil.url}`
    expect(await here.runWith({ env, cwd }, ...COMMENT)).toEqual(fails(4, `${from}. Run relay setup`))
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

describe('relay whoami', () => {
  it('prints the account, where the token is stored, when it expires, and its scopes', async () => {
    await using here = await place({ signedIn: true })
    await here.serve()
    const account = `account    octo\ncode host  ${here.sandbox.url}\nuser       ada\n`
    const token = `token      in ${here.home}/default, expires \\S+Z\nscopes     repo\n`
    expect(await here.run('whoami')).toEqual(prints(expect.stringMatching(`^${account}${token}$`)))
  })

  it('reports that the code host no longer knows the token, exit 4', async () => {
    await using here = await place()
    await endToken(here.sandbox.url, CLIENT, await here.useToken())
    expect(await here.run('whoami')).toEqual(fails(4, 'Invalid or expired token'))
  })

  it('reports that the code host failed, exit 8', async () => {
    await using here = await place({ signedIn: true })
    here.sandbox.faults.next('user', '502')
    const why = 'Could not get the account of ada: The sandbox failed (502)'
    expect(await here.run('whoami')).toEqual(fails(8, why))
  })
})

describe('relay revoke', () => {
  it('ends the token here and at the code host', async () => {
    await using here = await place()
    const { address } = await here.serve()
    const token = await here.signIn()
    const ended = `the token of ada is deleted here, and revoked at ${here.sandbox.url}\n`
    expect(await here.run('revoke')).toEqual(notes(ended))
    expect((await here.run('token')).code).toBe(4)
    const headers = { Authorization: `Bearer ${token}` }
    expect((await fetch(`${here.sandbox.url}/api/v3/user`, { headers })).status).toBe(401)
    const body = JSON.stringify({ owner: 'octo', repo: 'demo', issueNumber: 1, body: 'x' })
    const call = { method: 'POST', headers: { ...headers, 'Content-Type': 'application/json' }, body }
    expect((await fetch(`${address}/api/comment`, call)).status).toBe(401)
  })

  it('leaves the code host alone with --local', async () => {
    await using here = await place()
    const token = await here.useToken()
    const removed = { v: 1, user: 'ada', removed: true, upstream: 'skipped' }
    expect(await json(here.run('revoke', '--local', '--json'))).toEqual(removed)
    const headers = { Authorization: `Bearer ${token}` }
    expect((await fetch(`${here.sandbox.url}/api/v3/user`, { headers })).status).toBe(200)
  })

  it('is exit 8 when the code host cannot be reached, and the token is deleted here all the same', async () => {
    await using here = await place({ signedIn: true })
    await here.sandbox[Symbol.asyncDispose]()
    const deleted = `The token of ada is deleted here, but ${here.sandbox.url} did not revoke it: `
    const err = expect.stringContaining(deleted)
    expect(await here.run('revoke')).toEqual({ code: 8, out: '', err })
    expect((await here.run('token')).code).toBe(4)
  })

  it('reports that there was nothing to revoke', async () => {
    await using here = await place({ host: 'none' })
    const nothing = 'ada was not signed in, so there was nothing to revoke\n'
    expect(await here.run('revoke')).toEqual(notes(nothing))
  })

  it('names what is missing to revoke at the code host', async () => {
    await using here = await place({ signedIn: true })
    const env = NO_CLIENT
    const valid = `The token of ada is deleted here, but it is still valid at ${here.sandbox.url}: revoking it there needs RELAY_CLIENT_ID and RELAY_CLIENT_SECRET`
    expect(await here.runWith({ env }, 'revoke')).toEqual(fails(8, valid))
  })
})
