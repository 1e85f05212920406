import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { emptyFolder } from '../kit/folder.js'
import { place } from '../kit/place.js'
import { receiver, valuesOf } from '../kit/receiver.js'
import { shared } from './fixture.js'

// A file of the working folder chooses among the profiles that the user has, and so among code hosts, stores and schemes.

const STORED = 'gta_canary-of-the-company'
const PIPED = 'ghp_canary-meant-for-another-host'
const CLIENT = { RELAY_CLIENT_ID: 'client', RELAY_CLIENT_SECRET: 'canary-client-secret' }

/** A code host at which the user has a profile. */
const company = shared(() =>
  receiver(({ path: asked }) => ({
    body: asked.endsWith('/user') ? { login: 'octo' } : [],
    headers: { 'x-oauth-scopes': 'repo' },
  })),
)
let read = 0
/** The Authorization of the requests since the test before. */
function reached(): string[] {
  const found = company.received.slice(read)
  read = company.received.length
  return found.flatMap((request) => valuesOf(request, 'authorization'))
}
afterEach(() => void reached())

const here = shared(async () => {
  const machine = await place({ host: 'none', env: { RELAY_PORT: '0' } })
  const named = ['--provider', 'github', '--provider-url', company.url, '--profile', 'work']
  const login = await machine.runWith({ stdin: STORED }, 'login', '--with-token', ...named)
  expect(login).toMatchObject({ code: 0 })
  return machine
})

const FOLDERS = [
  ['relay.json', '{"profile":"work"}'],
  ['.env', 'RELAY_PROFILE=work\n'],
] as const

function folderWith(file: string, text: string): string {
  const folder = emptyFolder()
  writeFileSync(path.join(folder, file), text)
  return folder
}

describe.each(FOLDERS)('a profile that only %s names', (file, text) => {
  const cwd = (): string => folderWith(file, text)
  const refusal = (what: string): string =>
    `${what} is not sent to the code host of a profile that only this folder names: ${company.url}`
  const advice = 'with --profile work, or with export RELAY_PROFILE=work\n'

  it.each([
    ['a token', ['login', '--with-token'], {}, 'A token'],
    ['a client secret', ['login', '--no-browser'], CLIENT, 'RELAY_CLIENT_SECRET'],
  ] as const)(
    'gets no sign-in with %s, exit 2, but does once the user names it',
    async (_, argv, env, what) => {
      reached()
      const ran = await here.runWith({ cwd: cwd(), env, stdin: PIPED }, ...argv)
      expect(ran).toMatchObject({ code: 2, err: expect.stringContaining(refusal(what)) })
      expect(ran.err).toContain(advice)
      expect(reached()).toEqual([])
    },
  )

  it('takes the token once the user names the profile', async () => {
    const named = { cwd: cwd(), stdin: PIPED, env: { RELAY_PROFILE: 'work' } }
    expect(await here.runWith(named, 'login', '--with-token')).toMatchObject({ code: 0 })
    expect(reached()).toContain(`Bearer ${PIPED}`)
    const flag = await here.runWith(
      { cwd: cwd(), stdin: STORED },
      'login',
      '--with-token',
      '--profile',
      'work',
    )
    expect(flag).toMatchObject({ code: 0 })
  })

  it('acts with the token that it has, at the code host of that', async () => {
    expect(await here.runWith({ cwd: cwd() }, 'whoami', '--json')).toMatchObject({ code: 0 })
    expect(new Set(reached())).toEqual(new Set([`Bearer ${STORED}`]))
  })

  it('sends neither the password nor the key of this shell to its shared store', async () => {
    const env = { PGPASSWORD: 'canary', RELAY_TOKEN_KEY: Buffer.alloc(32).toString('base64') }
    await using machine = await place({ host: 'none', env })
    const folder = path.join(machine.home, 'work')
    mkdirSync(folder, { mode: 0o700 })
    const shared = { v: 1, store: 'postgres://somebody@127.0.0.1:1/db', provider: null, providerUrl: null }
    writeFileSync(path.join(folder, 'profile.json'), JSON.stringify({ ...shared, sandbox: false }), {
      mode: 0o600,
    })
    const ran = await machine.runWith({ cwd: cwd() }, 'log')
    expect(ran).toMatchObject({
      code: 2,
      err: expect.stringContaining('The shared store of profile work is not used'),
    })
  })
})

it('a sign-in below a path of a host does not name its root, nor another path', async () => {
  await using machine = await place({ host: 'none' })
  const team = ['--provider', 'github', '--provider-url', `${company.url}/team`]
  const login = await machine.runWith({ stdin: STORED }, 'login', '--with-token', ...team)
  expect(login).toMatchObject({ code: 0 })
  expect(
    await machine.runWith({ env: { RELAY_PROVIDER_URL: `${company.url}/team` } }, 'token'),
  ).toMatchObject({
    code: 0,
  })
  reached()
  for (const url of [company.url, `${company.url}/evil`, `${company.url}/team/evil`]) {
    const cwd = folderWith('relay.json', JSON.stringify({ provider: 'github', providerUrl: url }))
    const given = await machine.runWith({ cwd, stdin: PIPED }, 'login', '--with-token')
    expect([given.code, (await machine.runWith({ cwd }, 'whoami')).code]).toEqual([2, 2])
  }
  expect(reached()).toEqual([])
  const cwd = folderWith(
    'relay.json',
    JSON.stringify({ provider: 'github', providerUrl: `${company.url}/team` }),
  )
  expect(await machine.runWith({ cwd }, 'whoami')).toMatchObject({ code: 0 })
})
