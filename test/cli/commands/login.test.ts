import path from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { describe, expect, it, vi } from 'vitest'
import { main } from '../../../src/cli/main.js'
import { openJournal } from '../../../src/journal/open.js'
import { LOGIN_LIMIT } from '../../../src/oauth/login.js'
import { openDatabase } from '../../../src/store/open.js'
import { testContext } from '../../helpers/context.js'
import { delivery } from '../../journal/rig.js'
import { fill } from '../journal-rig.js'
import { fakeGitea } from '../../helpers/gitea.js'
import { beginSignIn, signInAt } from '../../helpers/sign-in.js'
import { shell, startAlone, startServed, type Ran, type Shell } from '../rig.js'
import { waitingOf } from '../../helpers/journal.js'

/** Runs `relay login --no-browser …`, does `visit` with the address it prints, and waits for its end. */
async function login(
  { env }: Shell,
  argv: readonly string[],
  visit: (address: string) => Promise<unknown>,
): Promise<Ran> {
  let said = ''
  let tell: ((address: string) => void) | undefined
  const address = new Promise<string>((resolve) => (tell = resolve))
  const stderr = {
    write(text: string) {
      said += text
      const [, found] = /\n {2}(http\S+)\n/.exec(said) ?? []
      if (found) tell?.(found)
    },
  }
  const { context, out } = testContext({ env, stderr })
  const ended = main(['login', '--no-browser', ...argv], context)
  const first = await Promise.race([address, ended])
  if (typeof first === 'string') await visit(first)
  return { code: await ended, out: out(), err: said }
}

const ENDS = String.raw`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`

describe('relay login', () => {
  it('signs in through the running instance and prints account, store and expiry', async () => {
    await using served = await startServed()
    await served.shell.run(['revoke'])
    const { url } = served.serving
    const { code, out, err } = await login(served.shell, [], signInAt)
    expect({ code, out }).toEqual({ code: 0, out: '' })
    expect(err).toMatch(
      new RegExp(
        `^Open this address in a browser:\n\n  ${url}/auth/sandbox\\?userId=ada&login=[\\w-]{32}\n\n` +
          'Waiting up to 5 minutes for you to sign in there. Ctrl-C cancels.\n' +
          `signed in as octo at ${served.sandbox.url}, for user ada\nthe token is in \\S+ and expires ${ENDS}\n$`,
      ),
    )
    expect((await served.shell.run(['token'])).out).toMatch(/^gho_\w+\n$/)
    // It has named the account, so the first action need not.
    expect(await served.shell.run(['comment', 'octo/demo#1', 'hello'])).toMatchObject({ code: 0, err: '' })
  })

  it('receives the callback itself when no instance runs, and releases the profile', async () => {
    await using alone = await startAlone()
    await alone.shell.run(['revoke', '--local'])
    const here = shell({ ...alone.shell.env, RELAY_PORT: '0' }, alone.shell.home)
    const { code, out } = await login(here, ['--json'], signInAt)
    expect(code).toBe(0)
    expect(JSON.parse(out)).toEqual({
      v: 1,
      user: 'ada',
      login: 'octo',
      provider: 'sandbox',
      providerUrl: alone.sandbox.url,
      store: expect.any(String),
      expiresAt: expect.stringMatching(new RegExp(`^${ENDS}$`)),
    })
    expect((await login(here, [], signInAt)).code).toBe(0)
  })

  it('does nothing else meanwhile: forwards nothing and removes nothing from the journal', async () => {
    await using alone = await startAlone()
    const { home } = alone.shell
    const target = 'push=exec:exit 9'
    await fill(
      alone.shell,
      async (journal) => {
        await journal.append(delivery('old', { receivedAt: 0 }))
        await journal.append(delivery('waiting', { receivedAt: 0 }))
      },
      [target],
    )
    const here = shell({ ...alone.shell.env, RELAY_PORT: '0', RELAY_EXEC: 'push=exit 9' }, home)
    expect((await login(here, [], signInAt)).code).toBe(0)
    await using database = await openDatabase({ kind: 'file', folder: path.join(home, 'default') })
    const journal = openJournal(database.sql)
    expect((await waitingOf(journal)).map(({ n, forward }) => [n, forward.status])).toEqual([
      [1, 'waiting'],
      [2, 'waiting'],
    ])
    expect(await journal.attempts(1)).toEqual([])
  })

  it('reports that it was refused, exit 4', async () => {
    await using served = await startServed()
    const { code, out, err } = await login(served.shell, ['--user', 'bob'], (address) =>
      signInAt(address, 'cancel'),
    )
    expect({ code, out }).toEqual({ code: 4, out: '' })
    expect(err.split('\n').at(-2)).toBe(
      `error: bob is not signed in at ${served.sandbox.url}: access was denied at the code host (access_denied)`,
    )
    expect((await served.shell.run(['token', '--user', 'bob'])).code).toBe(4)
  })

  it('hears of a Cancel that brings nothing but the cookie, as at Gitea 1.15, exit 4', async () => {
    await using gitea = await fakeGitea()
    const { id, secret } = gitea.state.client
    const here = shell({
      RELAY_PROVIDER: 'gitea',
      RELAY_PROVIDER_URL: gitea.url,
      RELAY_CLIENT_ID: id,
      RELAY_CLIENT_SECRET: secret,
      RELAY_PORT: '0',
    })
    const { code, err } = await login(here, [], async (address) => {
      const { cookie } = await beginSignIn(address)
      await fetch(new URL('/auth/gitea/callback', address), { headers: { cookie }, redirect: 'manual' })
    })
    expect({ code, err: err.split('\n').at(-2) }).toEqual({
      code: 4,
      err: `error: ada is not signed in at ${gitea.url}: access was denied at the code host (access_denied)`,
    })
  })

  it('names the sign-in that failed, exit 4', async () => {
    await using served = await startServed()
    served.sandbox.faults.next('token', '502')
    const { code, err } = await login(served.shell, [], signInAt)
    expect(code).toBe(4)
    expect(err).toContain('the code host was unreachable or failed (provider_unavailable)')
  })

  it('is given up by Ctrl-C, exit 130', async () => {
    await using served = await startServed()
    const controller = new AbortController()
    const { context } = testContext({
      env: served.shell.env,
      signal: controller.signal,
      stderr: { write: (text: string) => void (text.includes('Waiting') && controller.abort()) },
    })
    expect(await main(['login', '--no-browser'], context)).toBe(130)
  })

  it('gives up after five minutes without a sign-in, exit 7', async () => {
    await using served = await startServed()
    vi.useFakeTimers({ toFake: ['Date'] })
    try {
      const { code, out, err } = await login(served.shell, [], async () => {
        // The address is there a moment before the wait begins.
        await setImmediate()
        vi.setSystemTime(Date.now() + LOGIN_LIMIT)
      })
      expect({ code, out, err: err.split('\n').at(-2) }).toEqual({
        code: 7,
        out: '',
        err: 'error: No sign-in was completed within 5 minutes',
      })
    } finally {
      vi.useRealTimers()
    }
  })

  it('names what to set up when no OAuth client is configured, exit 2', async () => {
    expect(await shell().run(['login', '--no-browser'])).toEqual({
      code: 2,
      out: '',
      err: 'error: Sign-in at https://github.com is not set up. Run relay setup, or set RELAY_CLIENT_ID and RELAY_CLIENT_SECRET of an OAuth app with the callback http://127.0.0.1:8787/auth/github/callback\n',
    })
  })

  it('refuses a store that forgets, exit 2', async () => {
    await using alone = await startAlone()
    const { env, home } = alone.shell
    expect(await shell({ ...env, RELAY_STORE: 'memory' }, home).run(['login', '--no-browser'])).toEqual({
      code: 2,
      out: '',
      err: 'error: --store memory would lose the token as soon as this command ends\n',
    })
  })

  it('prints how to forward the port over SSH', async () => {
    await using served = await startServed()
    const over = shell({ ...served.shell.env, SSH_CONNECTION: '1 2 3 4' }, served.shell.home)
    const { err } = await login(over, [], signInAt)
    const { port } = new URL(served.serving.url)
    expect(err).toContain(
      `From another machine, forward the port first: ssh -L ${port}:127.0.0.1:${port} <this machine>`,
    )
  })
})
