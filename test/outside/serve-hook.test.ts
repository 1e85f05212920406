import { cpSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { repository } from '../kit/code-host.js'
import { emptyFolder, type Env } from '../kit/folder.js'
import { linesOf } from '../kit/journal.js'
import { CLIENT, hostVariables, place, type Serving } from '../kit/place.js'
import { closedPort } from '../kit/ports.js'
import { start } from '../kit/run.js'
import { objects } from './example.js'
import { fresh } from './fixture.js'

const here = fresh(() => place({ signedIn: true }))
const demo = fresh(() => repository(here.sandbox))
const HOOK = ['--hook', 'octo/demo']

describe('relay serve', () => {
  it('with --hook leaves no webhook for its user to make', async () => {
    const env = hostVariables('github', 'http://127.0.0.1:1', CLIENT)
    await using serving = start(['serve', '--port', '0', ...HOOK], { env })
    await serving.says('no hook of octo/demo yet: ')
    const { err } = await serving.stop()
    expect(err).toContain('/webhook\n               of the webhook that relay creates in octo/demo\n')
  })

  it('names the command for a first sign-in, with the profile', async () => {
    const {
      RELAY_CLIENT_ID: _,
      RELAY_CLIENT_SECRET: __,
      ...env
    } = hostVariables('github', 'http://127.0.0.1:1', CLIENT)
    await using serving = start(['serve', '--port', '0', '--profile', 'mine', ...HOOK], { env })
    await serving.says('no hook of octo/demo yet: ')
    const next = 'or the sign-in has ended. Run relay setup --profile mine'
    expect((await serving.stop()).err).toContain(next)
  })

  it('says who is signed in, or how to sign in', async () => {
    const ended = async (): Promise<string> => {
      await using serving = here.start('serve', '--port', '0')
      await serving.says('  targets')
      return (await serving.stop()).err
    }
    const signedIn = await ended()
    expect(signedIn).toMatch(/^ {2}signed in {4}ada {2}relay whoami shows the account$/m)
    expect(signedIn).not.toContain('relay login')
    expect(await here.run('revoke')).toMatchObject({ code: 0 })
    expect(await ended()).toMatch(/^ {2}sign in {6}relay login$/m)
  })
})

describe('a webhook secret of the folder, whose author can be anyone', () => {
  const warning =
    'warning: the code host signs with the secret of RELAY_WEBHOOK_SECRET in .env: anyone who can read that can sign deliveries, too. Without it, relay makes one of its own\n'

  it('is given to a hook with a warning, by each command that makes one', async () => {
    const cwd = emptyFolder()
    const env = { ...here.env, RELAY_WEBHOOK_SECRET: undefined }
    const add = ['hook', 'add', 'octo/demo', '--url', 'https://relay.test/webhook']
    expect((await here.runWith({ cwd, env }, ...add)).err).not.toContain('secret of')
    writeFileSync(path.join(cwd, '.env'), 'RELAY_WEBHOOK_SECRET=known\n')
    expect(await here.runWith({ cwd, env }, ...add)).toMatchObject({
      code: 0,
      err: expect.stringContaining(warning),
    })
    const serving = here.startWith({ cwd, env }, 'serve', '--port', '0', ...HOOK)
    await serving.says(warning)
    await serving.stop()
  })
})

describe('the hook of relay serve --hook', () => {
  /** `relay serve --hook octo/demo` once it has the hook. */
  const serveHook = async (removal?: number, ...more: string[]) => {
    const seams = removal === undefined ? {} : { seams: { limits: { removal } } }
    const serving = await here.serveWith(seams, ...more, ...HOOK)
    const { id, created } = await serving.object({ type: 'hook', state: 'ready' })
    return { serving, id, created }
  }
  /** The hooks that there are, and those that `relay hook list` shows. */
  const hooks = async (): Promise<[unknown[], unknown[]]> => {
    const listed = objects(await here.run('hook', 'list', '--json')).map(({ id }) => id)
    return [(await demo.hooks()).map(({ id }) => id), listed]
  }
  /** Starts again after the first start left its hook, which is used again and then removed. */
  const expectUsedAgain = async (id: unknown): Promise<void> => {
    const again = await serveHook()
    expect([again.id, again.created]).toEqual([id, false])
    expect(await hooks()).toEqual([[id], [id]])
    expect((await again.serving.stop()).err).toContain('hook of octo/demo removed')
    expect(await hooks()).toEqual([[], []])
  }

  it('is made once the user has signed in, as soon as relay sees it', async () => {
    expect(await here.run('revoke')).toMatchObject({ code: 0 })
    const serving = await here.serveWith({ seams: { limits: { signInLook: 50 } } }, ...HOOK)
    const failed = { error: expect.stringContaining('relay login'), retries: true }
    expect(await serving.object({ type: 'hook', state: 'failed' })).toMatchObject(failed)
    const body = JSON.stringify({ message: 'Bad credentials' })
    here.sandbox.faults.next('hook', { kind: 'answer', status: 401, body })
    await here.useToken()
    const [, refused] = await serving.objects({ type: 'hook', state: 'failed' }, 2)
    expect(refused).toMatchObject({
      error: expect.stringContaining('Invalid or expired token'),
      retries: true,
    })
    const { url } = await serving.object({ type: 'hook', state: 'ready' })
    expect((await demo.hooks()).map((hook) => hook.url)).toEqual([url])
  })

  it('is made after a failure of the code host, and given up where a person has to act', async () => {
    here.sandbox.faults.next('hook', '502')
    const serving = await here.serve(...HOOK, '--hook', 'octo/nowhere')
    const failures = await serving.objects({ type: 'hook', state: 'failed' }, 2)
    const said = failures.map(({ error, retries }) => `${String(retries)}: ${String(error).slice(0, 20)}`)
    expect(new Set(said)).toEqual(new Set(['true: The sandbox failed (', 'false: The sandbox refused:']))
    await serving.object({ type: 'hook', state: 'ready' })
  })

  it('keeps the address and events that relay hook add gave it, and stays', async () => {
    const chosen = 'http://127.0.0.1:9/chosen'
    await here.run('hook', 'add', 'octo/demo', '--url', chosen, '--events', 'push')
    const { serving } = await serveHook()
    await serving.stop()
    expect((await demo.hooks()).map(({ url, events }) => [url, events])).toEqual([[chosen, ['push']]])
  })

  it.each(['SIGTERM', 'SIGINT'] as const)(
    'is one, however it is spelled, and removed after %s',
    async (signal) => {
      const { serving, id } = await serveHook(undefined, '--hook', 'Octo/Demo')
      expect(await hooks()).toEqual([[id], [id]])
      const { code, err } = await serving.stop(signal)
      const created = `hook of octo/demo created: ${serving.address}/webhook`
      expect([code, err.match(/hook of octo\/demo .*/gi)]).toEqual([
        0,
        [created, 'hook of octo/demo removed'],
      ])
      expect(await hooks()).toEqual([[], []])
    },
  )

  it.each([
    ['fails', '502', 'The sandbox failed (502)', undefined],
    ['cuts the connection', 'reset', 'The sandbox', undefined],
    ['does not answer', 'slow', 'The code host did not answer within 0.3 s', 300],
  ] as const)('is named when the code host %s, and used again', async (_name, fault, why, removal) => {
    const { serving, id } = await serveHook(removal)
    here.sandbox.faults.always('hook', fault)
    const { code, err } = await serving.stop('SIGINT')
    const named = `the hook of octo/demo could not be removed: ${why}`
    expect([code, err]).toEqual([0, expect.stringContaining(named)])
    expect(err).toContain('The next serve --hook uses it again, and relay hook remove octo/demo removes it\n')
    here.sandbox.faults.clear()
    expect(await hooks()).toEqual([[id], [id]])
    await expectUsedAgain(id)
  })
})

describe('two relays with --hook on one repository', () => {
  interface Relay {
    readonly serving: Serving
    readonly env: Env
    readonly url: string
  }

  /** A relay with --hook, once it has its hook. */
  const begin = async (env: Env = {}, ...flags: string[]): Promise<Relay> => {
    const serving = await here.serveWith({ env }, ...HOOK, ...flags)
    await serving.says(/^\S+ {2}hook of .*\n/m)
    return { serving, env, url: `${env['RELAY_PUBLIC_URL'] ?? serving.address}/webhook` }
  }
  /** A data folder with a copy of what is in that of the place now. */
  const copied = (): Env => {
    const RELAY_HOME = emptyFolder()
    cpSync(here.home, RELAY_HOME, { recursive: true })
    return { RELAY_HOME }
  }
  /** What a relay said of its hook. */
  const linesAbout = ({ serving }: Relay): string[] =>
    serving.err.match(/(?<=^\S+ {2}hook of octo\/demo ).*$/gm) ?? []
  const urls = async () => new Set((await demo.hooks()).map(({ url }) => url))
  /** Once the relay has so many comments, how many it has. */
  const comments = async ({ serving, env }: Relay, count: number): Promise<number> => {
    await serving.objects({ type: 'delivery', event: 'issue_comment' }, count)
    const profile = { env: { ...here.env, RELAY_PROFILE: 'default', ...env } }
    return (await linesOf(profile, '--event', 'issue_comment')).length
  }

  it('each have a hook at an address of their own, from copies of one profile', async () => {
    const both = [await begin(copied()), await begin(copied())]
    expect(await urls()).toEqual(new Set(both.map(({ url }) => url)))
    await demo.comment('hello')
    for (const relay of both) expect(await comments(relay, 1)).toBe(1)
    for (const { serving } of both) await serving.stop()
    expect(both.map(linesAbout)).toEqual(both.map(({ url }) => [`created: ${url}`, 'removed']))
    expect(await demo.hooks()).toEqual([])
  })

  it('take the hook of a profile that was copied while it had one once, not in turn', async () => {
    const port = String(await closedPort())
    const before = await begin({}, '--port', port)
    here.sandbox.faults.always('hook', '502')
    await before.serving.stop()
    here.sandbox.faults.clear()
    const copy = copied()
    const one = await begin({}, '--port', port)
    const two = await begin(copy)
    const taken = [`repaired (it led to ${one.url}): ${two.url}`]
    expect([linesAbout(two), await urls()]).toEqual([taken, new Set([two.url])])
    // The first, which has no hook now, leaves that of the second alone, and makes its own at its next start.
    await one.serving.stop()
    expect([linesAbout(one), await urls()]).toEqual([[`is ready: ${one.url}`], new Set([two.url])])
    const again = await begin()
    const made = [`created: ${again.url}`]
    expect([linesAbout(again), await urls()]).toEqual([made, new Set([again.url, two.url])])
    await demo.comment('hello')
    expect([await comments(again, 1), await comments(two, 1), linesAbout(two).length]).toEqual([1, 1, 1])
  })

  it('share the hook of one address: the second says so, and leaves it at its end', async () => {
    const one = await begin()
    // A relay behind the same proxy, here the first one itself.
    const env = { RELAY_HOME: emptyFolder(), RELAY_PUBLIC_URL: one.serving.address }
    const stdin = await here.sandbox.token('repo')
    expect(await here.runWith({ env, stdin }, 'login', '--with-token')).toMatchObject({ code: 0 })
    const two = await begin(env)
    const shared = `is ready: ${one.url} (it was there before, and now has the webhook secret of this profile; another relay at this address needs the same)`
    expect([linesAbout(two), await urls()]).toEqual([[shared], new Set([one.url])])
    await demo.comment('hello')
    expect(await comments(one, 1)).toBe(1)
    await two.serving.stop()
    expect([linesAbout(two).length, await urls()]).toEqual([1, new Set([one.url])])
    await one.serving.stop()
    expect(linesAbout(one).at(-1)).toBe('removed')
  })
})
