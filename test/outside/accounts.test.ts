import { userInfo } from 'node:os'
import { describe, expect, it } from 'vitest'
import { beginSignIn } from '../kit/pages.js'
import { helpPages } from './help-pages.js'
import { fresh } from './fixture.js'
import { type Rig, startRig } from './sign-in-place.js'

// Any program of this machine can sign a user in over HTTP, as SPEC.md has it: what its user sees of that, and what a command says.

const rig = fresh(() => startRig())

/** Goes through the browser's part of a sign-in, at the address where it begins. */
async function visit({ server }: Rig, address: string): Promise<void> {
  const { authorize, cookie } = await beginSignIn(address)
  const { redirect_uri: back } = Object.fromEntries(new URL(authorize).searchParams)
  const answer = await fetch(`${back}?${server.approve(authorize).toString()}`, {
    headers: { cookie },
    redirect: 'manual',
  })
  expect(answer.headers.get('location')).toContain('auth=success')
}

/** Signs the user in as this account with `relay login`. */
async function login(account: string, user = 'ada') {
  rig.server.account = account
  const running = rig.here.start('login', '--no-browser', '--user', user)
  await running.says(/\n {2}(http\S+)\n/)
  await visit(rig, /\n {2}(http\S+)\n/.exec(running.err)?.[1] ?? '')
  const ended = await running.ended
  expect(ended.code).toBe(0)
  return ended
}

/** Signs the user in as another program of this machine can. */
async function strangerSignsIn(
  account: string | undefined,
  { address } = rig.relay,
  user = 'ada',
): Promise<void> {
  rig.server.account = account
  await visit(rig, `${address}/auth/github?userId=${user}`)
}

const warning = (account: string, last: string, user = 'ada'): string =>
  `warning: ${user} acts as ${account} at ${rig.server.url}. relay login did not sign that account in, which last signed in as ${last}. relay login replaces it\n`

describe('relay serve', () => {
  const line = (text: string): string => `  ${text} at ${rig.server.url}`
  /** What serve has printed, without the time of day. */
  const printed = (): string[] => rig.relay.err.split('\n').map((text) => text.replace(/^\d\d:\d\d:\d\d/, ''))

  it('says whose account a user has after each sign-in and revocation over HTTP', async () => {
    const { origin } = new URL(rig.server.url)
    const about = { v: 1, type: 'account', user: 'ada', origin }
    const said = async (act: () => Promise<unknown>, fields: object, text: string): Promise<void> => {
      await act()
      expect(await rig.relay.object({ ...about, ...fields })).toEqual({ ...about, ...fields })
      await rig.relay.says(text)
      expect(printed().some((each) => each.endsWith(text))).toBe(true)
    }
    const signedIn = { state: 'signed in' }
    const nobody = 'an account that the code host does not name'
    await said(
      () => login('octo'),
      { ...signedIn, account: 'octo', before: null },
      line('ada is signed in as octo'),
    )
    await said(
      () => strangerSignsIn('mallory'),
      { ...signedIn, account: 'mallory', before: 'octo' },
      `warning:${line('ada is signed in as mallory').slice(1)}, no longer as octo`,
    )
    await said(
      () => strangerSignsIn(undefined),
      { ...signedIn, account: null, before: 'mallory' },
      `warning:${line(`ada is signed in as ${nobody}`).slice(1)}, no longer as mallory`,
    )
    await strangerSignsIn('octo')
    await said(
      () => rig.ask('DELETE', '/auth/token/ada'),
      { state: 'signed out', account: null, before: 'octo' },
      `warning: ada is signed out of ${origin}: the token of octo is deleted`,
    )
    // By the proved way of the profile's own commands, too.
    await login('octo')
    const before = objectsOf(rig.relay.out).length
    const noClient = { RELAY_CLIENT_ID: undefined, RELAY_CLIENT_SECRET: undefined }
    await rig.here.runWith({ env: noClient }, 'revoke')
    expect(objectsOf(rig.relay.out).slice(before)).toMatchObject([{ state: 'signed out', before: 'octo' }])
  })

  it('writes the same to a JSON log, and a change also under --quiet', async () => {
    await rig.relay.stop()
    const relay = await rig.here.serve('--log-format', 'json', '--quiet')
    await strangerSignsIn('octo', relay)
    await strangerSignsIn('mallory', relay)
    await relay.object({ type: 'account', account: 'mallory' })
    const logged = objectsOf(relay.err).filter(({ type }) => type === 'account')
    expect(logged).toMatchObject([
      { level: 'info', user: 'ada', account: 'octo', before: null },
      { level: 'warn', user: 'ada', account: 'mallory', before: 'octo' },
    ])
  })

  it('prints each of them under --quiet', async () => {
    await rig.relay.stop()
    const relay = await rig.here.serve('--quiet')
    await strangerSignsIn('octo', relay)
    const text = `  ada is signed in as octo at ${rig.server.url}\n`
    await relay.says(text)
    expect(relay.err.endsWith(text)).toBe(true)
  })

  it('says nothing where nothing was signed in', async () => {
    expect((await rig.ask('DELETE', '/auth/token/nobody')).status).toBe(200)
    await strangerSignsIn('octo')
    await rig.relay.object({ type: 'account' })
    expect(objectsOf(rig.relay.out).filter(({ type }) => type === 'account')).toHaveLength(1)
  })
})

describe('a command', () => {
  /** How each command that has a user acts for that user. */
  const ACTING: Readonly<Record<string, readonly string[]>> = {
    comment: ['octo/demo#1', 'hello'],
    merge: ['octo/demo#2'],
    react: ['octo/demo#1', '+1'],
    'hook add': ['octo/demo', '--url', 'https://relay.test/webhook'],
    'hook list': ['octo/demo'],
    'hook test': ['octo/demo'],
    'hook remove': ['octo/demo'],
    'catch-up': ['octo/demo'],
    token: [],
    whoami: [],
    revoke: ['--local'],
  }
  /** Those with a user that do not act for one: to sign in, or to diagnose. */
  const OTHERS = ['login', 'doctor']

  it('that acts for a user is in this table', async () => {
    const pages = await helpPages()
    const named = [...pages].filter(([name, page]) => name !== '' && page.includes('--user <id>'))
    expect(named.map(([name]) => name).toSorted()).toEqual([...Object.keys(ACTING), ...OTHERS].toSorted())
  })

  it.each(Object.entries(ACTING))(
    '%s says first that it acts for an account which relay login did not sign in',
    async (name, argv) => {
      await login('octo')
      rig.server.api = () => ({ status: 201, body: { id: 1, html_url: 'https://x.test/1' } })
      expect((await rig.here.run(...name.split(' '), ...argv)).err).not.toContain('acts as')
      await login('octo')
      await strangerSignsIn('mallory')
      const { err } = await rig.here.run(...name.split(' '), ...argv)
      expect(err.slice(0, err.indexOf('\n') + 1)).toBe(warning('mallory', 'octo'))
      expect(err.match(/acts as/g)).toHaveLength(1)
    },
  )

  it.each([['comment'], ['token'], ['whoami'], ['revoke']])('%s --json has it as a member', async (name) => {
    await login('octo')
    await strangerSignsIn('mallory')
    rig.server.api = () => ({ status: 201, body: { id: 1, html_url: 'https://x.test/1' } })
    const { out } = await rig.here.run(name, ...(ACTING[name] ?? []), '--json')
    expect(JSON.parse(out)).toMatchObject({ otherAccount: { account: 'mallory', lastLogin: 'octo' } })
  })

  it('has it as a member of a failure, and says it in doctor', async () => {
    await login('octo')
    await strangerSignsIn('mallory')
    const { out, err } = await rig.here.run('comment', 'octo/demo#1', 'hello', '--json')
    const failure = JSON.parse(err.split('\n').at(-2) ?? '')
    const otherAccount = { account: 'mallory', lastLogin: 'octo' }
    expect([out, failure]).toEqual(['', expect.objectContaining({ type: 'error', otherAccount })])
    const doctor = (await rig.here.run('doctor')).out.replaceAll(/\s+/g, ' ')
    expect(doctor).toContain('ada acts as mallory at')
    expect(doctor).toContain('which last signed in as octo fix: relay login')
  })

  it('of relay login itself says whose account it replaces', async () => {
    await login('octo')
    const { err } = await login('mallory')
    expect(err).toContain(
      `warning: ada was signed in as octo at ${rig.server.url} before, and is mallory from now on\n`,
    )
    expect((await login('mallory')).err).not.toContain('from now on')
  })

  it('says it before a dry run, and at the start of relay serve --hook', async () => {
    await login('octo')
    await strangerSignsIn('mallory')
    const { code, err } = await rig.here.run('comment', 'octo/demo#1', 'hello', '--dry-run')
    expect([code, err]).toEqual([
      0,
      `${warning('mallory', 'octo')}would comment on octo/demo#1 (5 bytes) at ${rig.server.url} as ada\n`,
    ])
    await rig.relay.stop()
    const relay = await rig.here.serve('--hook', 'octo/demo')
    await relay.says(`ada acts as mallory at ${rig.server.url}`)
  })

  it.each([
    ['after relay login signed in as the new account', () => login('mallory')],
    ['for an account that is the same', () => strangerSignsIn('octo')],
  ])('says nothing %s', async (_, act) => {
    await login('octo')
    await act()
    expect(await rig.here.run('token')).toMatchObject({ code: 0, err: '' })
  })

  it('says it of a user whom relay login never signed in, where it has signed in another', async () => {
    await login('octo', 'bob')
    await strangerSignsIn('mallory')
    const { err } = await rig.here.run('token')
    const never = `ada acts as mallory at ${rig.server.url}. relay login did not sign that account in. relay login replaces it`
    expect(err).toBe(`warning: ${never}\n`)
  })

  it('says it where relay login has signed nobody in, of the user whom this machine names', async () => {
    const { username } = userInfo()
    await strangerSignsIn('mallory', rig.relay, username)
    const { err } = await rig.here.runWith({ env: { RELAY_USER: undefined } }, 'token')
    const never = `${username} acts as mallory at ${rig.server.url}. relay login did not sign that account in. relay login replaces it`
    expect(err).toBe(`warning: ${never}\n`)
    // An application's user has signed in at its pages.
    expect(await rig.here.run('token', '--user', username)).toMatchObject({ code: 0, err: '' })
  })

  it('says it after a revocation and another sign-in, and after a renewal', async () => {
    rig.server.renews = true
    rig.server.grant = { expires_in: 30, refresh_token: 'ghr_first', refresh_token_expires_in: 86_400 }
    await login('octo')
    await rig.ask('DELETE', '/auth/token/ada')
    await strangerSignsIn('mallory')
    expect((await rig.here.run('token')).err).toBe(warning('mallory', 'octo'))
    await login('octo')
    // The renewed token is still of the account that signed in.
    expect(await rig.here.run('token')).toMatchObject({ code: 0, err: '' })
  })
})

/** The JSON objects that were printed, one for a line. */
function objectsOf(text: string): Record<string, unknown>[] {
  return text
    .split('\n')
    .filter((each) => each.startsWith('{'))
    .map((each) => JSON.parse(each))
}
