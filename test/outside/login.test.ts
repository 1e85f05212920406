import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { describe, expect, it, vi } from 'vitest'
import { authorizationServer, OAUTH_CLIENT } from '../kit/authorization-server.js'
import { fill, waitingOf } from '../kit/journal.js'
import { leaveOut } from '../kit/needs.js'
import { addressOf, beginSignIn, signInAt } from '../kit/pages.js'
import { hostVariables, type Place, place } from '../kit/place.js'
import { receiver, valuesOf } from '../kit/receiver.js'
import { BUILT, type Ended, fails } from '../kit/run.js'
import { json, notes } from './fixture.js'

/** Runs `relay login --no-browser …`, does `visit` with the address it prints, and waits for its end. */
async function login(
  here: Place,
  argv: readonly string[],
  visit: (address: string) => Promise<unknown>,
  env: Record<string, string> = {},
): Promise<Omit<Ended, 'signal'>> {
  const running = here.startWith({ env: { RELAY_PORT: '0', ...env } }, 'login', '--no-browser', ...argv)
  await visit(await addressOf(running))
  const { signal: _, ...ran } = await running.ended
  return ran
}

/** How a command ended, with only the last line of what it said. */
const last = ({ err, ...ran }: Omit<Ended, 'signal'>) => ({ ...ran, err: `${err.split('\n').at(-2)}\n` })
const DENIED = 'access was denied at the code host (access_denied)'
const ENDS = String.raw`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`

describe('relay login', () => {
  it('signs in through the running instance and prints account, store and expiry', async () => {
    await using here = await place()
    const { address: url } = await here.serve()
    const said = `Open this address in a browser:

  ${url}/auth/sandbox\\?userId=ada&login=[\\w-]{32}

Waiting up to 5 minutes for you to sign in there. Ctrl-C cancels.
signed in as octo at ${here.sandbox.url}, for user ada
the token is in \\S+ and expires ${ENDS}
`
    expect(await login(here, [], signInAt)).toEqual(notes(expect.stringMatching(`^${said}$`)))
    expect((await here.run('token')).out).toMatch(/^gho_\w+\n$/)
    // It has named the account, so the first action need not.
    expect(await here.run('comment', 'octo/demo#1', 'hello')).toMatchObject({ code: 0, err: '' })
  })

  it.each([
    ['hang', 1, 'does not answer'],
    [{ status: 502, body: '<html>' }, 2, 'answered 502'],
  ] as const)('says what is wrong with the running instance: %j, exit %i', async (reply, code, why) => {
    await using here = await place()
    const { address } = await here.serve()
    const file = path.join(here.home, '.running', readdirSync(path.join(here.home, '.running'))[0] ?? '')
    // Proves that it is the instance, and then answers as that should not.
    await using between = await receiver(async (request) => {
      if (request.path !== '/instance') return reply
      const headers = { 'X-Relay-Proof': valuesOf(request, 'x-relay-proof')[0] ?? '' }
      const passed = await fetch(`${address}/instance`, { method: 'POST', headers, body: request.body })
      const proof = passed.headers.get('x-relay-proof') ?? ''
      return { headers: { 'X-Relay-Proof': proof }, body: await passed.text() }
    })
    writeFileSync(file, readFileSync(file, 'utf8').replace(`"url":"${address}"`, `"url":"${between.url}"`))
    const seams = { limits: { tokenEndpoint: 100 } }
    const said = fails(code, `relay at ${between.url} ${why}`)
    expect(await here.runWith({ seams }, 'login', '--no-browser')).toEqual(said)
  })

  it('receives the callback itself when no instance runs, and releases the profile', async () => {
    await using here = await place()
    const { code, out } = await login(here, ['--json'], signInAt)
    const at = { provider: 'sandbox', providerUrl: here.sandbox.url }
    const kept = { store: expect.any(String), expiresAt: expect.stringMatching(new RegExp(`^${ENDS}$`)) }
    expect([code, JSON.parse(out)]).toEqual([0, { v: 1, user: 'ada', login: 'octo', ...at, ...kept }])
    expect((await login(here, [], signInAt)).code).toBe(0)
  })

  it('does nothing else meanwhile: forwards nothing and removes nothing from the journal', async () => {
    await using here = await place()
    const forwards = { 'push=exec:exit 9': {} }
    await fill(here, [
      { id: 'old', receivedAt: 0, forwards },
      { id: 'waiting', receivedAt: 0, forwards },
    ])
    expect((await login(here, [], signInAt, { RELAY_EXEC: 'push=exit 9' })).code).toBe(0)
    expect(await waitingOf(here)).toEqual([1, 2])
    const { targets } = await json(here.run('show', '1', '--json'))
    expect(targets).toMatchObject([{ state: 'waiting', attempts: 0 }])
  })

  it('reports that it was refused, exit 4', async () => {
    await using here = await place()
    await here.serve()
    const ran = await login(here, ['--user', 'bob'], (address) => signInAt(address, 'cancel'))
    expect(last(ran)).toEqual(fails(4, `bob is not signed in at ${here.sandbox.url}: ${DENIED}`))
    expect((await here.run('token', '--user', 'bob')).code).toBe(4)
  })

  it('hears of a Cancel that brings nothing but the cookie, as at Gitea 1.15, exit 4', async () => {
    await using here = await place({ host: 'gitea' })
    const ran = await login(here, [], async (address) => {
      const { cookie } = await beginSignIn(address)
      await fetch(new URL('/auth/gitea/callback', address), { headers: { cookie }, redirect: 'manual' })
    })
    expect(last(ran)).toEqual(fails(4, `ada is not signed in at ${here.gitea.url}: ${DENIED}`))
  })

  it('gives up after five minutes without a sign-in, exit 7', async () => {
    if (BUILT) leaveOut('it sets the clock of this process')
    await using here = await place()
    await here.serve()
    vi.useFakeTimers({ toFake: ['Date'] })
    try {
      const ran = await login(here, [], async () => {
        // The address is there a moment before the wait begins.
        await setImmediate()
        vi.setSystemTime(Date.now() + 300_000)
      })
      expect(last(ran)).toEqual(fails(7, 'No sign-in was completed within 5 minutes'))
    } finally {
      vi.useRealTimers()
    }
  })

  it('prints how to forward the port over SSH', async () => {
    await using here = await place()
    const { address } = await here.serve()
    const { err } = await login(here, [], signInAt, { SSH_CONNECTION: '1 2 3 4' })
    const { port } = new URL(address)
    const forward = `forward the port first: ssh -L ${port}:127.0.0.1:${port} <this machine>`
    expect(err).toContain(`From another machine, ${forward}`)
  })
})

describe('a code host that issues a token, and does not say whose it is: its API is at another address', () => {
  it('is a failure in browser and command alike, and the address is named, exit 4', async () => {
    await using server = await authorizationServer()
    const env = hostVariables('github', server.url, OAUTH_CLIENT)
    await using here = await place({ host: 'none', env })
    await here.serve()
    let location = ''
    let page = 'not asked for'
    const ran = await login(here, [], async (address) => {
      const { authorize, cookie } = await beginSignIn(address)
      const back = new URL(new URL(authorize).searchParams.get('redirect_uri') ?? '')
      back.search = server.approve(authorize).toString()
      const answer = await fetch(back, { headers: { cookie }, redirect: 'manual' })
      location = answer.headers.get('location') ?? ''
      page = await (await fetch(location)).text()
    })
    expect(page).toContain('You are not signed in')
    expect(location).toMatch(/\/\?auth=error&reason=provider_unavailable$/)
    const why = `ada is not signed in at ${server.url}: the code host was unreachable or failed (provider_unavailable): a token was issued, but the API at ${server.url}/api/v3 did not say whose it is: GitHub refused: Not Found (no such repository or number, or no access to it)`
    expect(last(ran)).toEqual(fails(4, why))
    expect((await here.run('token')).code).toBe(4)
  })

  it('is told from one whose token endpoint fails', async () => {
    await using here = await place()
    await here.serve()
    here.sandbox.faults.next('token', '502')
    const { err } = await login(here, [], signInAt)
    const endpoint = `${here.sandbox.url}/login/oauth/access_token`
    expect(err).toContain(`(provider_unavailable): the token endpoint answered 502 (${endpoint})\n`)
  })
})
