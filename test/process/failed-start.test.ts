import { hash } from 'node:crypto'
import { lstatSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { injected } from '../kit/disk.js'
import { emptyFolder, type Env } from '../kit/folder.js'
import { has } from '../kit/needs.js'
import { type Place, place } from '../kit/place.js'
import { receiver } from '../kit/receiver.js'

// What fails leaves the data folder as it was: no new profile, and an earlier one with every byte.

/** Every folder, and the content of every file. */
function treeOf(folder: string): Record<string, string> {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true })
  return Object.fromEntries(
    entries
      .map(({ parentPath, name }) => path.join(parentPath, name))
      .map((file) => [
        path.relative(folder, file),
        lstatSync(file).isFile() ? hash('sha256', readFileSync(file)) : '/',
      ]),
  )
}

interface Cause {
  readonly argv: readonly string[]
  readonly env?: Env
  readonly wrapper?: readonly string[]
}

/** Why a start fails, with the port that another program has. */
const STARTS: Readonly<Record<string, (port: string) => Cause>> = {
  'a port in use': (port) => ({ argv: ['--port', port] }),
  "the sandbox's port in use": (port) => ({ argv: ['--sandbox', '--sandbox-port', port] }),
  'an address that is not here': () => ({ argv: ['--host', '192.0.2.1'] }),
  'an invalid setting': () => ({ argv: [], env: { RELAY_MAX_BODY: 'x' } }),
  'a secret file that is not there': () => ({
    argv: [],
    env: { RELAY_WEBHOOK_SECRET: '', RELAY_WEBHOOK_SECRET_FILE: '/nowhere' },
  }),
  'half of a client': () => ({ argv: [], env: { RELAY_CLIENT_ID: '', RELAY_CLIENT_SECRET: 'x' } }),
  'an unknown scheme': () => ({ argv: ['--source', 'x=nope'] }),
  'a source without a secret': () => ({ argv: ['--source', 'stripe'] }),
  'an open source': () => ({ argv: ['--source', 'door=none', '--host', '0.0.0.0'] }),
  'a tunnel without TLS': () => ({ argv: ['--tunnel', 'http://smee.example'] }),
  'a tunnel that a source cannot have': () => ({
    argv: ['--tunnel', 'https://127.0.0.1:1/x', '--source', 'gitlab'],
    env: { RELAY_SOURCE_GITLAB_SECRET: 'a-secret-of-gitlab-0123' },
  }),
  'a code host without TLS': () => ({
    argv: ['--provider', 'gitea', '--provider-url', 'http://git.example'],
  }),
  'a code host without an address': () => ({
    argv: ['--provider', 'gitea'],
    env: { RELAY_PROVIDER_URL: '' },
  }),
  'a route that is none': () => ({ argv: ['--forward', 'ftp://x'] }),
  'a hook of no repository': () => ({ argv: ['--hook', 'nonsense'] }),
  'a catch-up that there is not': () => ({
    argv: ['--catch-up', '--provider', 'gitea', '--provider-url', 'http://127.0.0.1:1'],
  }),
  'a database that does not answer': () => ({
    argv: ['--store', 'postgres://ada@127.0.0.1:1/relay'],
    env: { RELAY_TOKEN_KEY: Buffer.alloc(32).toString('base64') },
  }),
  'a store without a key': () => ({ argv: ['--store', 'postgres://ada@127.0.0.1:1/relay'] }),
}

/** Causes that SQLite meets, for which calls have to fail. */
const REFUSALS: Readonly<Record<string, (here: Place) => Cause>> = Object.fromEntries(
  [
    ['a database that cannot be written', 'pwrite64', 'EIO', 'relay.db'],
    ['a log that cannot be written', 'pwrite64', 'EDQUOT', 'relay.db-wal'],
    ['no shared memory', 'mmap', 'ENODEV', 'relay.db-shm'],
    ['no locks', 'fcntl', 'ENOLCK', 'serve.lock'],
  ].map(([name = '', call = '', code, file = '']) => [
    name,
    (here: Place) => ({
      argv: [],
      wrapper: injected(call, `error=${code}`, path.join(here.home, 'default', file)),
    }),
  ]),
)

async function failed(here: Place, home: string, { argv, env = {}, wrapper }: Cause): Promise<void> {
  const words = ['serve', ...(argv.includes('--port') ? [] : ['--port', '0']), ...argv]
  await using relay = here.startWith(
    { env: { ...env, RELAY_HOME: home }, ...(wrapper && { wrapper }) },
    ...words,
  )
  const { code, err } = await relay.ended
  expect([code, err]).toEqual([expect.any(Number), expect.stringMatching(/error: /)])
  expect(code).toBeGreaterThan(0)
}

describe('relay serve that cannot start', () => {
  it.each(Object.entries(STARTS))('leaves nothing where nothing was: %s', async (_, cause) => {
    await using squatter = await receiver()
    await using here = await place({ host: 'none' })
    const above = emptyFolder()
    await failed(here, path.join(above, 'data', 'relay'), cause(new URL(squatter.url).port))
    expect(treeOf(above)).toEqual({})
  })

  it.each(Object.entries(STARTS))('leaves an earlier profile as it was: %s', async (_, cause) => {
    await using squatter = await receiver()
    await using here = await place({ host: 'none' })
    const sandbox = ['--sandbox', '--sandbox-port', '0']
    const relays = [await here.serve(), await here.serve(...sandbox)]
    for (const relay of relays) await relay.stop()
    writeFileSync(path.join(here.home, 'default', 'relay.db.version-10'), 'a copy')
    const before = treeOf(here.home)
    await failed(here, here.home, cause(new URL(squatter.url).port))
    expect(Object.keys(treeOf(here.home))).toEqual(Object.keys(before))
    const isSame = (name: string): boolean => !name.endsWith('relay.db')
    const same = (tree: Record<string, string>) => Object.entries(tree).filter(([name]) => isSame(name))
    expect(same(treeOf(here.home))).toEqual(same(before))
  })

  it.runIf(has(['strace', 'Linux'], 'a start that the disk refuses'))(
    'leaves nothing where the disk refuses it',
    async () => {
      for (const [name, cause] of Object.entries(REFUSALS)) {
        await using here = await place({ host: 'none' })
        await failed(here, here.home, cause(here))
        expect([name, treeOf(here.home)]).toEqual([name, {}])
      }
    },
  )

  it('leaves what another command has stored, and no lock', async () => {
    await using here = await place({ host: 'none' })
    expect(await here.runWith({ stdin: 'whsec_mine' }, 'source', 'add', 'stripe')).toMatchObject({ code: 0 })
    await failed(here, here.home, { argv: ['--provider', 'gitea', '--provider-url', 'http://git.example'] })
    expect(await here.run('source', 'list', '--reveal', 'stripe')).toMatchObject({ out: 'whsec_mine\n' })
    expect(Object.keys(treeOf(here.home)).filter((name) => name.endsWith('.lock'))).toEqual([])
  })

  it('can be started in the same folder afterwards', async () => {
    await using here = await place({ host: 'none' })
    await failed(here, here.home, { argv: ['--provider', 'gitea', '--provider-url', 'http://git.example'] })
    const relay = await here.serve()
    expect((await relay.deliver()).status).toBe(200)
  })
})

describe('any other command that fails', () => {
  const COMMANDS: readonly (readonly string[])[] = [
    ['login', '--with-token'],
    ['login', '--no-browser'],
    ['setup', '--oauth-app'],
    ['source', 'add', 'stripe'],
    ['source', 'remove', 'x'],
    ['trigger', 'push'],
    ['replay', '1'],
    ['show', '1'],
    ['export', '1'],
    ['verify', '1'],
    ['log'],
    ['wait', 'push'],
    ['whoami'],
    ['token'],
    ['comment', 'o/r#1', 'hi'],
    ['merge', 'o/r#1'],
    ['inspect'],
    ['catch-up'],
    ['hook', 'list', 'o/r'],
    ['reset', '--yes'],
    ['config', '--reveal', 'clientSecret'],
    ['doctor'],
  ]

  it.each(COMMANDS.map((argv) => [argv.join(' '), argv] as const))(
    'leaves nothing where nothing was: %s',
    async (_, argv) => {
      await using here = await place({ host: 'none' })
      const above = emptyFolder()
      mkdirSync(path.join(above, 'empty'))
      for (const home of ['data/relay', 'empty']) {
        const { code } = await here.runWith(
          { env: { RELAY_HOME: path.join(above, home) }, stdin: '' },
          ...argv,
        )
        expect([home, code]).toEqual([home, expect.any(Number)])
        expect(code).toBeGreaterThan(0)
      }
      expect(treeOf(above)).toEqual({ empty: '/' })
    },
  )
})
