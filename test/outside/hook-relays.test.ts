import { cpSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { limited, repository, type Repository } from '../kit/code-host.js'
import { emptyFolder, type Env } from '../kit/folder.js'
import { linesOf } from '../kit/journal.js'
import { type Place, place, type Serving } from '../kit/place.js'
import { closedPort } from '../kit/ports.js'

let here: Place
let demo: Repository
beforeEach(async () => {
  here = await place({ signedIn: true })
  demo = await repository(here.sandbox)
})
afterEach(() => here[Symbol.asyncDispose]())

interface Relay {
  readonly serving: Serving
  readonly env: Env
  readonly url: string
}

/** A relay with --hook, once it has its hook. */
async function start(env: Env = {}, ...flags: string[]): Promise<Relay> {
  const serving = await here.serveWith({ env }, '--hook', 'octo/demo', ...flags)
  await serving.says(/^\S+ {2}hook of .*\n/m)
  return { serving, env, url: `${env['RELAY_PUBLIC_URL'] ?? serving.address}/webhook` }
}
/** A data folder with a copy of what is in that of the place now. */
const copied = (): Env => {
  const RELAY_HOME = emptyFolder()
  cpSync(here.home, RELAY_HOME, { recursive: true })
  return { RELAY_HOME }
}
/** Signs the user in with another data folder or profile. */
const signIn = async (env: Env): Promise<void> => {
  const stdin = await here.sandbox.token('repo')
  expect(await here.runWith({ env, stdin }, 'login', '--with-token')).toMatchObject({ code: 0 })
}
/** What a relay said of its hook. */
const linesAbout = ({ serving }: Relay): string[] => serving.err.match(/(?<=^\S+ {2})hook of .*$/gm) ?? []
const urls = async () => new Set((await demo.hooks()).map(({ url }) => url))
/** Once the relay has so many comments, how many it has. */
async function comments({ serving, env }: Relay, count: number): Promise<number> {
  await serving.objects({ type: 'delivery', event: 'issue_comment' }, count)
  return (
    await linesOf({ env: { ...here.env, RELAY_PROFILE: 'default', ...env } }, '--event', 'issue_comment')
  ).length
}

describe('two relays with --hook on one repository', () => {
  it('each have a hook at an address of their own, from copies of one profile', async () => {
    const one = await start(copied())
    const two = await start(copied())
    expect(await urls()).toEqual(new Set([one.url, two.url]))
    await demo.comment('hello')
    expect([await comments(one, 1), await comments(two, 1)]).toEqual([1, 1])
    await one.serving.stop()
    await two.serving.stop()
    expect([linesAbout(one), linesAbout(two), await demo.hooks()]).toEqual([
      [`hook of octo/demo created: ${one.url}`, 'hook of octo/demo removed'],
      [`hook of octo/demo created: ${two.url}`, 'hook of octo/demo removed'],
      [],
    ])
  })

  it('take the hook of a profile that was copied while it had one once, not in turn', async () => {
    const port = String(await closedPort())
    const before = await start({}, '--port', port)
    here.sandbox.faults.always('hook', '502')
    await before.serving.stop()
    here.sandbox.faults.clear()
    const copy = copied()
    const one = await start({}, '--port', port)
    const two = await start(copy)
    expect([linesAbout(two), await urls()]).toEqual([
      [`hook of octo/demo repaired (it led to ${one.url}): ${two.url}`],
      new Set([two.url]),
    ])
    // The first, which has no hook now, leaves that of the second alone, and makes its own at its next start.
    await one.serving.stop()
    expect([linesAbout(one), await urls()]).toEqual([
      [`hook of octo/demo is ready: ${one.url}`],
      new Set([two.url]),
    ])
    const again = await start()
    expect([linesAbout(again), await urls()]).toEqual([
      [`hook of octo/demo created: ${again.url}`],
      new Set([again.url, two.url]),
    ])
    await demo.comment('hello')
    expect([await comments(again, 1), await comments(two, 1), linesAbout(two).length]).toEqual([1, 1, 1])
  })

  it('share the hook of one address: the second says so, and leaves it at its end', async () => {
    const one = await start()
    // A relay behind the same proxy, here the first one itself.
    const env = { RELAY_HOME: emptyFolder(), RELAY_PUBLIC_URL: one.serving.address }
    await signIn(env)
    const two = await start(env)
    expect([linesAbout(two), await urls()]).toEqual([
      [
        `hook of octo/demo is ready: ${one.url} (it was there before, and now has the webhook secret of this profile; another relay at this address needs the same)`,
      ],
      new Set([one.url]),
    ])
    await demo.comment('hello')
    expect(await comments(one, 1)).toBe(1)
    await two.serving.stop()
    expect([linesAbout(two).length, await urls()]).toEqual([1, new Set([one.url])])
    await one.serving.stop()
    expect(linesAbout(one).at(-1)).toBe('hook of octo/demo removed')
  })
})

const MISSED = 5

/** A relay whose hook has a log of deliveries that it lacks, at a code host that redelivers none until `unlimit`. */
async function startBehind(...flags: string[]) {
  const port = String(await closedPort())
  await here.run('hook', 'add', 'octo/demo', '--url', `http://127.0.0.1:${port}/webhook`)
  await demo.comment(...Array.from({ length: MISSED }, (_, n) => `${n}`))
  here.sandbox.faults.always('redeliver', limited(1))
  return {
    serve: await here.serve('--port', port, '--hook', 'octo/demo', ...flags),
    unlimit: () => here.sandbox.faults.clear(),
    /** How many times a delivery was sent again. */
    redelivered: async (): Promise<number> => {
      const [hook] = await demo.hooks()
      return demo.redelivered(hook?.id ?? 0)
    },
  }
}

const NOTHING = 'caught up with octo/demo: nothing was missing\n'

describe('two processes that catch up with one hook', () => {
  it('take turns: relay catch-up waits for relay serve, and finds nothing missing', async () => {
    const { serve, unlimit, redelivered } = await startBehind('--catch-up')
    await serve.object({ type: 'hook', state: 'missing' })
    const second = here.start('catch-up', 'octo/demo')
    await second.says(`Process ${serve.pid} is catching up with octo/demo already.`)
    unlimit()
    expect(await serve.object({ type: 'hook', state: 'caught up' })).toMatchObject({ arrived: MISSED })
    expect(await second.ended).toMatchObject({ code: 0, out: NOTHING })
    expect(await redelivered()).toBe(MISSED)
  })
})
