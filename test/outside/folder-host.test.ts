import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { emptyFolder, type Env } from '../kit/folder.js'
import { codingAgent } from '../kit/mcp.js'
import { addressOf, beginSignIn } from '../kit/pages.js'
import { hostVariables, type Place, place, type Serving } from '../kit/place.js'
import { type Received, receiver } from '../kit/receiver.js'
import { type Ran, run } from '../kit/run.js'
import { readDocument } from './contract.js'
import { shared } from './fixture.js'

// A file of the working folder, whose author can be anyone, names the code host: no secret goes there, and nothing else.

const CLIENT = { id: 'client', secret: 'canary-client-secret' }
const PIPED = 'ghp_canary-given-on-standard-input'
const ISSUED = 'gho_canary-access-token'
const RENEWED_BY = 'ghr_canary-refresh-token'
/** Signed in with a token that has ended, and can be renewed. */
const ADA = 'ada'
/** Signed in with a token that lasts. */
const BOB = 'bob'
/** Seconds: it has ended when a command looks. */
const ENDED = 0.001

/** Answers like a code host that accepts every token and issues one to everybody. */
function anyHost() {
  return receiver(({ path: asked }) => {
    if (asked.includes('access_token'))
      return {
        body: {
          access_token: ISSUED,
          token_type: 'bearer',
          scope: 'repo',
          expires_in: ENDED,
          refresh_token: RENEWED_BY,
        },
      }
    return { headers: { 'x-oauth-scopes': 'repo' }, body: asked.endsWith('/user') ? { login: 'octo' } : [] }
  })
}

const honest = shared(anyHost)
const hostile = shared(anyHost)
let read = 0
/** What reached the address that only a folder names, since the test before. */
function reached(): string[] {
  const found = hostile.received.slice(read)
  read = hostile.received.length
  return found.map(({ method, path: asked }: Received) => `${method} ${asked}`)
}
afterEach(() => void reached())

/** A machine whose user has signed in at the honest code host, as two users, and has no settings of their own. */
const here = shared(async () => {
  const machine = await place({ host: 'none', env: { RELAY_PORT: '0' } })
  const env = hostVariables('sandbox', honest.url, CLIENT)
  const token = await machine.runWith({ env: { ...env, RELAY_USER: BOB }, stdin: PIPED }, ...TOKEN)
  expect(token).toMatchObject({ code: 0 })
  await using login = machine.startWith({ env: { ...env, RELAY_USER: ADA } }, 'login', '--no-browser')
  const { authorize, cookie } = await beginSignIn(await addressOf(login))
  const { searchParams } = new URL(authorize)
  const back = `${searchParams.get('redirect_uri')}?code=1&state=${searchParams.get('state')}`
  await fetch(back, { headers: { cookie }, redirect: 'manual' })
  await login.ended
  return machine
})

const TOKEN = ['login', '--with-token']

/** A file of a folder, and its content. */
type Files = Readonly<Record<string, string>>
const json = (settings: object): string => JSON.stringify(settings)
const env = (variables: Env): string =>
  Object.entries(variables)
    .map(([name, value]) => `${name}=${value}\n`)
    .join('')

interface Folder {
  readonly name: string
  readonly filesOf: (url: string) => Files
  /** What the user's environment names besides. */
  readonly own?: Env
}

/** How a folder can name a code host alone. */
const FOLDERS: readonly Folder[] = [
  {
    name: 'relay.json',
    filesOf: (url) => ({ 'relay.json': json({ provider: 'sandbox', providerUrl: url }) }),
  },
  {
    name: '.env',
    filesOf: (url) => ({ '.env': env({ RELAY_PROVIDER: 'github', RELAY_PROVIDER_URL: url }) }),
  },
  {
    name: 'the address alone in relay.json',
    filesOf: (url) => ({ 'relay.json': json({ providerUrl: `${url}/` }) }),
  },
  { name: 'the address alone in .env', filesOf: (url) => ({ '.env': env({ RELAY_PROVIDER_URL: url }) }) },
  {
    name: 'one half in each file',
    filesOf: (url) => ({
      'relay.json': json({ providerUrl: url, clientId: 'theirs' }),
      '.env': env({ RELAY_PROVIDER: 'gitea' }),
    }),
  },
  {
    name: 'relay.json above, in the checkout',
    filesOf: (url) => ({
      '../relay.json': json({ provider: 'gitea', providerUrl: `${url}/git` }),
      '../.git/HEAD': '',
    }),
  },
  {
    name: 'the address of a kind that the user names',
    filesOf: (url) => ({ '.env': env({ RELAY_PROVIDER_URL: url }) }),
    own: { RELAY_PROVIDER: 'gitea' },
  },
]

function folderOf(files: Files): string {
  const cwd = path.join(emptyFolder(), 'work')
  for (const [name, text] of Object.entries(files)) {
    const file = path.join(cwd, name)
    mkdirSync(path.dirname(file), { recursive: true })
    writeFileSync(file, text)
  }
  mkdirSync(cwd, { recursive: true })
  return cwd
}

/** For each command: uses that would send something to the code host and are refused, or one that sends nothing there. */
const USES: Readonly<Record<string, readonly (readonly string[])[] | 'sends nothing'>> = {
  'catch-up': [['octo/demo'], ['--since', '1h'], ['octo/demo', '--dry-run']],
  comment: [
    ['octo/demo#1', 'hello'],
    ['octo/demo#1', 'hello', '--sticky', 'x'],
  ],
  completion: 'sends nothing',
  config: 'sends nothing',
  export: 'sends nothing',
  help: 'sends nothing',
  'hook add': [['octo/demo', '--url', 'https://relay.example/webhook']],
  'hook list': [[], ['octo/demo']],
  'hook remove': [['octo/demo']],
  'hook test': [['octo/demo']],
  inspect: 'sends nothing',
  log: 'sends nothing',
  login: [['--with-token'], ['--no-browser'], ['--device']],
  merge: [['octo/demo#2'], ['octo/demo#2', '--if-green']],
  profiles: 'sends nothing',
  react: [['octo/demo#1', '+1']],
  replay: 'sends nothing',
  reset: [['--yes']],
  revoke: [[], ['--local']],
  routes: 'sends nothing',
  'routes add': 'sends nothing',
  'routes remove': 'sends nothing',
  'routes test': 'sends nothing',
  serve: [['--hook', 'octo/demo'], ['--catch-up']],
  setup: [['--yes'], ['--oauth-app', '--yes'], ['--app-hook', '--yes', '--no-browser']],
  show: 'sends nothing',
  skip: 'sends nothing',
  'hub invite': 'sends nothing',
  'hub list': 'sends nothing',
  'hub renew': 'sends nothing',
  'hub revoke': 'sends nothing',
  'source add': 'sends nothing',
  'source list': 'sends nothing',
  'source remove': 'sends nothing',
  token: [[], ['--header']],
  trigger: 'sends nothing',
  verify: 'sends nothing',
  version: 'sends nothing',
  wait: 'sends nothing',
  whoami: [[], ['--json']],
}
/** Those that send something else than the token that is stored, or all of them. */
const ALWAYS_REFUSED: ReadonlySet<string> = new Set(['login', 'reset', 'serve', 'setup'])
/** Those that have a test of their own below. */
const APART = ['doctor', 'mcp']
/** A use of each command that sends nothing to the code host. */
const HARMLESS: Readonly<Record<string, readonly string[]>> = {
  completion: ['bash'],
  export: ['1'],
  'hub invite': ['--uses', 'none'],
  'hub renew': ['none'],
  'hub revoke': ['none'],
  replay: ['fixtures/github/push.json', '--to', 'http://127.0.0.1:1/'],
  'routes add': ['http://127.0.0.1:1/'],
  'routes remove': ['http://127.0.0.1:1/'],
  'routes test': ['1'],
  show: ['1'],
  skip: ['1'],
  'source add': ['stripe'],
  'source remove': ['stripe'],
  trigger: ['push', '--to', 'http://127.0.0.1:1/'],
  verify: [path.resolve('fixtures/github/push.json')],
  wait: ['push', '--timeout', '10ms'],
}

/** The commands that a help page lists, with their subcommands. */
async function commandsOf(...above: string[]): Promise<string[]> {
  const { out } = await run([...above, '--help'])
  const [, listed = ''] = /\n(?:Service|Commands):\n([^]*?)\n(?:Environment|Exit codes):\n/.exec(out) ?? []
  const names = [...listed.matchAll(/^ {2}([\w-]+) /gm)].map(([, name = '']) => name)
  const below = await Promise.all(names.map((name) => commandsOf(...above, name)))
  return names.flatMap((name, i) => {
    const leaves = (below[i] ?? []).map((leaf) => `${name} ${leaf}`)
    return leaves.length > 0 && name !== 'routes' ? leaves : [name, ...leaves]
  })
}

it('every command of the help has a row here', async () => {
  const found = (await commandsOf()).filter((name) => name !== '')
  expect(found.toSorted()).toEqual([...Object.keys(USES), ...APART].toSorted())
})

const WITH_CLIENT: Env = { RELAY_CLIENT_ID: CLIENT.id, RELAY_CLIENT_SECRET: CLIENT.secret, RELAY_USER: ADA }
const WITHOUT: Env = { RELAY_USER: BOB }

/** Runs every use that would send something. Gives those that were not refused for the code host's address. */
async function notRefused(
  machine: Place,
  cwd: string,
  given: Env,
  except: readonly string[] = [],
): Promise<unknown[]> {
  const found: unknown[] = []
  for (const [command, uses] of Object.entries(USES))
    for (const argv of uses === 'sends nothing' || except.includes(command) ? [] : uses) {
      const words = [...command.split(' '), ...argv]
      const { code, out, err } = await machine.runWith(
        { cwd, env: given, stdin: `${PIPED}\n` },
        ...words,
        '--json',
      )
      const { code: kind, error = '' } = lastObject(err)
      const isRefused =
        code === 2 && kind === 'settings' && String(error).includes('address that only this folder names')
      // Of a token that is stored, this says more.
      const isBound = code === 4 && /^The token of bob is from \S+ and is not sent to /.test(String(error))
      const isFine = isRefused || (isBound && !ALWAYS_REFUSED.has(command))
      if (!isFine || (out + err).includes('canary')) found.push({ words, code, out, err })
    }
  return found
}

function lastObject(text: string): Readonly<Record<string, unknown>> {
  const line = text.trim().split('\n').at(-1) ?? ''
  return line.startsWith('{') ? JSON.parse(line) : {}
}

describe.each(FOLDERS)('a code host that only a folder names: $name', ({ filesOf, own = {} }) => {
  it.each([
    ['a client secret', WITH_CLIENT],
    ['no client secret', WITHOUT],
  ])('is sent nothing by any command, with %s', async (_with, given) => {
    const cwd = folderOf(filesOf(hostile.url))
    expect(await notRefused(here, cwd, { ...own, ...given })).toEqual([])
    for (const [command, uses] of Object.entries(USES))
      if (uses === 'sends nothing')
        await here.runWith(
          { cwd, env: { ...own, ...given }, stdin: PIPED },
          ...command.split(' '),
          ...(HARMLESS[command] ?? []),
        )
    await here.runWith({ cwd, env: { ...own, ...given } }, 'doctor')
    expect(reached()).toEqual([])
  })
})

it.each(FOLDERS)(
  'relay mcp sends nothing there, whatever an agent asks of it: $name',
  async ({ filesOf, own = {} }) => {
    const at = { env: { ...here.env, ...own, ...WITHOUT }, cwd: folderOf(filesOf(hostile.url)) }
    await using agent = await codingAgent(at, '--serve', '--allow-actions')
    const state = await agent.call('relay_state')
    // The address is a stranger's text.
    const { notes } = Object(state['fromOutside'])
    expect([state['codeHost'], String(notes)]).toEqual([
      null,
      expect.stringMatching(/only this folder names|is not sent to/),
    ])
    const target = 'octo/demo#1'
    await agent.fails('comment', { target, text: 'hello' })
    await agent.fails('merge', { target })
    await agent.fails('react', { target, reaction: '+1' })
    expect(reached()).toEqual([])
  },
)

describe('a relay serve that was started in such a folder', () => {
  const cwd = (): string =>
    folderOf({ 'relay.json': json({ provider: 'sandbox', providerUrl: hostile.url }) })
  const served = (): Promise<Serving> => here.serveWith({ cwd: cwd(), env: WITHOUT })

  it('receives, and says that sign-in and actions are off', async () => {
    await using relay = await served()
    expect(await relay.deliver()).toMatchObject({ status: 200 })
    await relay.says('warning: sign-in and actions are off: A token is not sent to an address')
    expect(reached()).toEqual([])
  })

  it('does not start with a client secret, which it would send', async () => {
    const ran = await here.runWith({ cwd: cwd(), env: WITH_CLIENT }, 'serve', '--port', '0')
    expect(ran).toMatchObject({
      code: 2,
      err: expect.stringContaining('address that only this folder names'),
    })
  })

  it('sends nothing for any of its addresses, and leads no browser there', async () => {
    await using relay = await served()
    const action = { owner: 'octo', repo: 'demo', issueNumber: 1, pullNumber: 1, body: 'x', content: '+1' }
    const { paths } = readDocument()
    for (const [template, methods] of Object.entries(paths))
      for (const method of Object.keys(methods)) {
        const asked = template
          .replace('{provider}', 'sandbox')
          .replace('{userId}', ADA)
          .replace('{source}', 'x')
        const query = template.endsWith('{provider}') ? `?userId=${BOB}` : '?code=1&state=x'
        const headers = { authorization: `Bearer ${PIPED}`, 'content-type': 'application/json' }
        const body = method === 'post' ? json(action) : undefined
        const init = {
          method: method.toUpperCase(),
          headers,
          redirect: 'manual',
          ...(body && { body }),
        } as const
        const answer = await fetch(`${relay.address}${asked}${query}`, init)
        expect([asked, answer.headers.get('location') ?? '']).not.toEqual([
          asked,
          expect.stringContaining(hostile.url),
        ])
        await answer.arrayBuffer()
      }
    expect(reached()).toEqual([])
  })

  it('has no command of another folder send anything there', async () => {
    await using _ = await served()
    const clean = folderOf({})
    // Those two work on no profile that is served.
    expect(await notRefused(here, clean, WITHOUT, ['reset', 'serve'])).toEqual([])
    await here.runWith({ cwd: clean, env: WITHOUT }, 'doctor')
    expect(reached()).toEqual([])
  })

  it('is not remembered: its address does not become the user’s own', async () => {
    await (await served()).stop()
    const { out } = await here.run('profiles', '--json')
    expect(JSON.parse(out)).toMatchObject({ name: 'default', providerUrl: honest.url })
    const again = await here.runWith({ cwd: cwd(), env: WITHOUT, stdin: PIPED }, ...TOKEN)
    expect([again.code, reached()]).toEqual([2, []])
  })
})

describe('a code host that the folder names, and the user too', () => {
  const files = (url: string): Files => ({ 'relay.json': json({ provider: 'sandbox', providerUrl: url }) })
  const machine = (): Promise<Place> => place({ host: 'none' })
  const sent = (): string[] => reached().filter((each) => each === 'GET /api/v3/user')

  it.each<[string, (here: Place, cwd: string) => Promise<Ran>]>([
    ['a flag', (at, cwd) => at.runWith({ cwd, stdin: PIPED }, ...TOKEN, '--provider-url', hostile.url)],
    [
      'the environment',
      (at, cwd) => at.runWith({ cwd, stdin: PIPED, env: { RELAY_PROVIDER_URL: hostile.url } }, ...TOKEN),
    ],
    [
      'config.json',
      (at, cwd) => {
        at.configure({ providerUrl: `${hostile.url}/` })
        return at.runWith({ cwd, stdin: PIPED }, ...TOKEN)
      },
    ],
    [
      'what the error says to type',
      async (at, cwd) => {
        const { err } = await at.runWith({ cwd, stdin: PIPED }, ...TOKEN)
        const [typed = ''] = /\bexport \w+='?[^',]+'?/.exec(err) ?? []
        const RELAY_PROVIDER_URL = execFileSync('sh', ['-c', `${typed}; printf %s "$RELAY_PROVIDER_URL"`], {
          encoding: 'utf8',
        })
        return at.runWith({ cwd, stdin: PIPED, env: { RELAY_PROVIDER_URL } }, ...TOKEN)
      },
    ],
  ])('gets the token: named by %s', async (_, login) => {
    await using at = await machine()
    const { code, err } = await login(at, folderOf(files(hostile.url)))
    expect([code, sent().length, /^error: .*/m.exec(err)]).toEqual([0, 1, null])
  })

  it('gets it where the user signed in before, also if another was used since', async () => {
    await using at = await machine()
    const cwd = folderOf(files(hostile.url))
    const named = { RELAY_PROVIDER: 'sandbox', RELAY_PROVIDER_URL: hostile.url }
    expect(await at.runWith({ env: named, stdin: PIPED }, ...TOKEN)).toMatchObject({ code: 0 })
    expect(await at.runWith({ cwd }, 'whoami')).toMatchObject({ code: 0 })
    const other = { RELAY_PROVIDER: 'sandbox', RELAY_PROVIDER_URL: honest.url, RELAY_USER: 'carol' }
    expect(await at.runWith({ env: other, stdin: PIPED }, ...TOKEN)).toMatchObject({ code: 0 })
    expect(await at.runWith({ cwd }, 'whoami')).toMatchObject({ code: 0 })
    expect(sent()).toHaveLength(3)
  })

  it('but at another path of that address it does not', async () => {
    await using at = await machine()
    const named = { RELAY_PROVIDER: 'gitea', RELAY_PROVIDER_URL: `${hostile.url}/ours` }
    expect(await at.runWith({ env: named, stdin: PIPED }, ...TOKEN)).toMatchObject({ code: 0 })
    reached()
    const cwd = folderOf({ 'relay.json': json({ provider: 'gitea', providerUrl: `${hostile.url}/theirs` }) })
    expect(await at.runWith({ cwd }, 'whoami')).toMatchObject({ code: 2 })
    expect(reached()).toEqual([])
  })
})
