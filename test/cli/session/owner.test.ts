import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import type { TokenGrant } from '../../../src/tokens/tokens.js'
import { emptyFolder, testContext } from '../../helpers/context.js'
import { keepToken, serveFor, shell, startAlone } from '../rig.js'

const COMMENT = ['comment', 'octo/demo#1', 'hello']
const TOKEN_CALL = { method: 'POST', path: '/login/oauth/access_token' }

/** An instance that has the OAuth client, and a second terminal that has not; the user's token is as `over` says. */
async function startBoth(over: Partial<TokenGrant>) {
  const alone = await startAlone({ lifetimes: { access: 3600, refresh: 86_400 } })
  const { grant, sandbox } = alone
  const { context } = testContext({ env: { ...alone.shell.env, RELAY_PORT: '0' } })
  const serving = await serveFor(context)
  const signedIn = { accessToken: grant.access_token, refreshToken: grant.refresh_token, origin: sandbox.url }
  await keepToken(alone.shell, { ...signedIn, ...over })
  return {
    alone,
    serving,
    second: shell({ RELAY_PROVIDER: 'sandbox', RELAY_PROVIDER_URL: sandbox.url }, alone.shell.home),
    /** How often the token endpoint was asked since. */
    renewals: () => sandbox.requests.filter((call) => call.path === TOKEN_CALL.path).length - 1,
    async [Symbol.asyncDispose]() {
      await serving[Symbol.asyncDispose]()
      await alone[Symbol.asyncDispose]()
    },
  }
}

describe('a second terminal without the client secret', () => {
  it.each([
    ['has ended', -1],
    ['ends within a minute', 30_000],
  ])('has the instance renew a token that %s, once', async (_, lives) => {
    await using both = await startBoth({ expiresAt: Date.now() + lives })
    const { second, alone, renewals } = both
    expect(await second.run(COMMENT)).toMatchObject({ code: 0, err: '' })
    const { out } = await second.run(['token'])
    expect(out).toMatch(/^gho_\w+\n$/)
    expect(out).not.toContain(alone.grant.access_token)
    expect(renewals()).toBe(1)
  })

  it('asks nothing of the instance for a token that lives on', async () => {
    await using both = await startBoth({})
    expect(await both.second.run(COMMENT)).toMatchObject({ code: 0, err: '' })
    expect(both.renewals()).toBe(0)
  })

  it('may have the client id, as from relay.json', async () => {
    await using both = await startBoth({ expiresAt: Date.now() - 1 })
    const cwd = emptyFolder()
    writeFileSync(path.join(cwd, 'relay.json'), '{"clientId":"abc"}')
    expect(await both.second.run(COMMENT, { cwd })).toMatchObject({ code: 0, err: '' })
    expect(both.renewals()).toBe(1)
  })

  it('may not name another client, exit 2', async () => {
    await using both = await startBoth({})
    const env = { RELAY_CLIENT_ID: 'abc', RELAY_CLIENT_SECRET: 'def' }
    expect(await both.second.run(COMMENT, { env })).toEqual({
      code: 2,
      out: '',
      err: `error: RELAY_CLIENT_ID is abc, but process ${process.pid} serves profile default with the OAuth client relay-test. Unset the variable, or name another profile with --profile\n`,
    })
  })

  it('hears why the instance could not renew, exit 4', async () => {
    await using both = await startBoth({ expiresAt: Date.now() - 1, refreshToken: 'ghr_unknown' })
    expect(await both.second.run(COMMENT)).toEqual({
      code: 4,
      out: '',
      err: 'error: The token of ada could not be renewed (the provider answered bad_refresh_token); sign in again: relay login\n',
    })
    expect(await both.second.run([...COMMENT, '--user', 'bob'])).toEqual({
      code: 4,
      out: '',
      err: 'error: bob is not signed in, or the sign-in has ended. Run relay login\n',
    })
  })

  it('names what is missing when no instance runs, exit 4', async () => {
    await using both = await startBoth({ expiresAt: Date.now() - 1 })
    await both.serving[Symbol.asyncDispose]()
    const { code, err } = await both.second.run(COMMENT)
    expect({ code, err }).toEqual({
      code: 4,
      err: 'error: The token of ada has ended; renewing it needs RELAY_CLIENT_ID and RELAY_CLIENT_SECRET; sign in again: relay login\n',
    })
  })
})
