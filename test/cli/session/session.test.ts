import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Context } from '../../../src/cli/context.js'
import { openSession } from '../../../src/cli/session/session.js'
import { takeInstance, type Instance } from '../../../src/instance/instance.js'
import { publishInstance } from '../../../src/instance/registry.js'
import { createTokens } from '../../../src/tokens/tokens.js'
import { emptyFolder, testContext } from '../../helpers/context.js'
import { scriptedServer, type Answer } from '../../helpers/scripted-server.js'
import { keepToken, profileStore, type Shell, shell, startAlone, startServed, USER } from '../rig.js'

const COMMENT = ['comment', 'octo/demo#1', 'hello']
const RAW = { color: 'auto' } as const

function contextOf({ env }: Shell): Context {
  return testContext({ env }).context
}

/** Has the profile say that this process serves it at `url`. */
async function claim(shell: Shell, url: string, providerUrl: string): Promise<Instance> {
  await using store = await profileStore(shell)
  const place = { url, publicUrl: url, provider: 'sandbox', providerUrl }
  const instance = await takeInstance(store, { pid: process.pid, ...place })
  const more = {
    profile: 'default',
    store: 'file',
    sandbox: false,
    secretPrint: '',
    madeSecret: null,
  } as const
  publishInstance(shell.home, { ...instance.record, ...more })
  return instance
}

describe('the running instance', () => {
  it('decides which code host it is, whatever files say', async () => {
    await using served = await startServed()
    const { serving, sandbox } = served
    const cwd = emptyFolder()
    writeFileSync(path.join(cwd, '.env'), 'RELAY_PROVIDER_URL=https://git.example\n')
    writeFileSync(path.join(cwd, 'relay.json'), '{"provider":"gitea"}')
    await using session = await openSession({ ...contextOf(served.shell), cwd }, RAW)
    const { user, instance, settings, provider, client } = session
    expect({
      user,
      url: instance?.url,
      settings: [settings.provider, settings.providerUrl],
      provider: [provider.name, provider.url],
      client: [client?.id, client?.secret.reveal()],
    }).toEqual({
      user: USER,
      url: serving.url,
      settings: ['sandbox', sandbox.url],
      provider: ['sandbox', sandbox.url],
      client: [serving.settings.oauthClient?.id, serving.settings.oauthClient?.secret.reveal()],
    })
    const { accessToken } = await session.owner()
    expect(accessToken).toBe((await serving.relay.tokens.get(USER))?.accessToken)
  })

  it('is contradicted by no flag, exit 2', async () => {
    await using served = await startServed()
    const { sandbox, shell } = served
    const serves = `but process ${process.pid} serves profile default for sandbox at ${sandbox.url}. Omit the flag, or name another profile with --profile`
    const ran = async (...flags: string[]) => shell.run([...COMMENT, ...flags])
    expect([
      await ran('--provider', 'gitea', '--provider-url', sandbox.url),
      await ran('--provider', 'sandbox', '--provider-url', 'https://git.example'),
    ]).toEqual([
      { code: 2, out: '', err: `error: --provider is gitea, ${serves}\n` },
      { code: 2, out: '', err: `error: --provider-url is https://git.example, ${serves}\n` },
    ])
    expect(sandbox.comments).toEqual([])
    expect(await ran('--provider', 'sandbox', '--provider-url', `${sandbox.url}/`)).toMatchObject({ code: 0 })
  })

  it('is contradicted by no variable either, exit 2', async () => {
    await using served = await startServed()
    const { sandbox, shell } = served
    const serves = `but process ${process.pid} serves profile default for sandbox at ${sandbox.url}. Unset the variable, or name another profile with --profile`
    const ran = async (env: Record<string, string>) => shell.run(COMMENT, { env })
    expect([
      await ran({ RELAY_PROVIDER: 'gitea', RELAY_PROVIDER_URL: sandbox.url }),
      await ran({ RELAY_PROVIDER_URL: 'https://git.example' }),
    ]).toEqual([
      { code: 2, out: '', err: `error: RELAY_PROVIDER is gitea, ${serves}\n` },
      { code: 2, out: '', err: `error: RELAY_PROVIDER_URL is https://git.example, ${serves}\n` },
    ])
    expect(sandbox.comments).toEqual([])
    expect(await ran({ RELAY_PROVIDER: 'sandbox', RELAY_PROVIDER_URL: `${sandbox.url}/` })).toMatchObject({
      code: 0,
    })
  })

  it('is asked at its address, and nothing is done in this process', async () => {
    await using served = await startServed()
    await using watched = await scriptedServer(({ path, headers }) => {
      if (path === '/health') return proof(instance, headers)
      return { body: { ok: true, id: 7, url: 'https://git.example/octo/demo/issues/1#issuecomment-7' } }
    })
    await served.serving[Symbol.asyncDispose]()
    const instance = await claim(served.shell, watched.url, served.sandbox.url)
    const token = (await tokenOf(served.shell)) ?? ''
    expect(await served.shell.run(COMMENT)).toEqual({
      code: 0,
      out: 'https://git.example/octo/demo/issues/1#issuecomment-7\n',
      err: '',
    })
    const asked = watched.received.map(({ path, headers }) => [path, headers.authorization])
    expect(asked).toEqual([
      ['/health', undefined],
      ['/api/comment', `Bearer ${token}`],
    ])
    // Where it has proved itself.
    expect(watched.connections).toBe(1)
  })

  it('that breaks the connection may have done it, exit 1', async () => {
    await using alone = await startAlone()
    await using broken = await scriptedServer(({ path, headers }): Answer =>
      path === '/health' ? proof(instance, headers) : 'reset',
    )
    const instance = await claim(alone.shell, broken.url, alone.sandbox.url)
    expect(await alone.shell.run(COMMENT)).toEqual({
      code: 1,
      out: '',
      err: `error: relay at ${broken.url} gave no complete answer (connection closed before an answer); the request may have been carried out all the same\n`,
    })
    expect(broken.received.map(({ path }) => path)).toEqual(['/health', '/api/comment'])
    expect(alone.sandbox.comments).toEqual([])
  })
})

describe('the bearer', () => {
  it('is never sent to another program on the port of the instance', async () => {
    await using alone = await startAlone()
    await using squatter = await scriptedServer(() => ({
      headers: { 'X-Relay-Instance': '0'.repeat(64) },
      body: { ok: true, id: 1, url: 'https://evil.example' },
    }))
    await claim(alone.shell, squatter.url, alone.sandbox.url)
    const ran = await alone.shell.run(COMMENT)
    const id = alone.sandbox.comments.at(-1)?.id
    expect(ran).toEqual({
      code: 0,
      out: `${alone.sandbox.url}/octo/demo/issues/1#issuecomment-${id}\n`,
      err: '',
    })
    expect(squatter.received.map(({ method, path }) => [method, path])).toEqual([['GET', '/health']])
    expect(JSON.stringify(squatter.received)).not.toContain(alone.grant.access_token)
  })

  it.each([
    ['.env', (url: string) => `RELAY_PROVIDER_URL=${url}\n`],
    ['relay.json', (url: string) => JSON.stringify({ providerUrl: url })],
  ])('never goes to another code host that a %s in the working folder names, exit 4', async (file, text) => {
    await using alone = await startAlone()
    await using evil = await scriptedServer(() => ({
      status: 201,
      body: { id: 1, html_url: 'https://evil' },
    }))
    const env = { RELAY_PROVIDER: 'sandbox' }
    const cwd = emptyFolder()
    writeFileSync(path.join(cwd, file), text(evil.url))
    expect(await shell(env, alone.shell.home).run(COMMENT, { cwd })).toEqual({
      code: 4,
      out: '',
      err: `error: The token of ada is from ${alone.sandbox.url} and is not sent to ${evil.url}; sign in again: relay login\n`,
    })
    expect(evil.received).toEqual([])
    expect(alone.sandbox.comments).toEqual([])
  })
})

describe('the token', () => {
  it('is needed, exit 4', async () => {
    await using alone = await startAlone()
    const err = 'error: bob is not signed in, or the sign-in has ended. Run relay login\n'
    expect(await alone.shell.run([...COMMENT, '--user', 'bob'])).toEqual({ code: 4, out: '', err })
    expect(await alone.shell.run(COMMENT, { env: { RELAY_USER: 'bob' } })).toEqual({ code: 4, out: '', err })
  })

  it('that the code host no longer accepts needs a new sign-in, exit 4', async () => {
    await using alone = await startAlone()
    const { sandbox, shell } = alone
    await keepToken(shell, { accessToken: 'stale', origin: sandbox.url })
    expect(await shell.run(COMMENT)).toEqual({
      code: 4,
      out: '',
      err: `error: Invalid or expired token for ada at ${sandbox.url}: run relay login\n`,
    })
  })

  it('that has ended is renewed first', async () => {
    await using alone = await startAlone({ lifetimes: { access: 3600, refresh: 86_400 } })
    const { sandbox, grant } = alone
    const ended = { accessToken: grant.access_token, expiresAt: Date.now() - 1, origin: sandbox.url }
    await keepToken(alone.shell, { ...ended, refreshToken: grant.refresh_token })
    expect(await alone.shell.run([...COMMENT, '--dry-run'])).toMatchObject({ code: 0 })
    expect(await tokenOf(alone.shell)).toBeUndefined()
    expect(await alone.shell.run(COMMENT)).toMatchObject({ code: 0, err: '' })
    expect(sandbox.comments).toHaveLength(1)
    expect(await tokenOf(alone.shell)).not.toBe(grant.access_token)
  })
})

describe('invalid settings', () => {
  it.each([
    [{ RELAY_PROVIDER: 'gitea' }, /^error: RELAY_PROVIDER_URL is not set/],
    [{ RELAY_PROVIDER_URL: 'http://git.example' }, /^error: The provider's address must be https/],
    [{ RELAY_USER: 'a b' }, /^error: RELAY_USER: must be 1–256 bytes without white space/],
  ])('%j, exit 2', async (env, message) => {
    const { code, out, err } = await shell(env).run(COMMENT)
    expect({ code, out }).toEqual({ code: 2, out: '' })
    expect(err).toMatch(message)
  })

  it('the profile of a sandbox that does not run, exit 1', async () => {
    const err = 'error: The sandbox is not running. Start it with relay serve --sandbox\n'
    expect(await shell({ RELAY_PROFILE: 'sandbox' }).run(COMMENT)).toEqual({ code: 1, out: '', err })
  })

  it('a data folder that cannot be made, exit 2', async () => {
    const home = path.join(emptyFolder(), 'file')
    writeFileSync(home, '')
    const client = { RELAY_CLIENT_ID: 'id', RELAY_CLIENT_SECRET: 'secret' }
    const { code, out, err } = await shell(client, home).run(['login'])
    expect({ code, out }).toEqual({ code: 2, out: '' })
    expect(err).toContain(`error: The folder ${home} cannot be made: it is not a folder`)
  })
})

function proof(instance: Instance, headers: Readonly<Record<string, unknown>>): Answer {
  return { headers: { 'X-Relay-Instance': instance.prove(String(headers['x-relay-challenge'])) } }
}

async function tokenOf(shell: Shell): Promise<string | undefined> {
  await using store = await profileStore(shell)
  return (await createTokens(store).get(USER))?.accessToken
}
