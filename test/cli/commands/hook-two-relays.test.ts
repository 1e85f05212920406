import { cpSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { hookText } from '../../../src/cli/commands/serve/hook-lines.js'
import { INSTANCE_KEY } from '../../../src/instance/record.js'
import { createProvider } from '../../../src/providers/open.js'
import type { Provider } from '../../../src/providers/provider.js'
import type { HookEvent } from '../../../src/serve/hook-event.js'
import type { Serving } from '../../../src/serve/serve.js'
import { emptyFolder, testContext } from '../../helpers/context.js'
import { type Alone, keepToken, profileStore, serveFor, shell, type Shell, startAlone, USER } from '../rig.js'

const REPO = { owner: 'octo', repo: 'demo' }

let alone: Alone
let provider: Provider
let token: string
let running: Relay[]
beforeEach(async () => {
  alone = await startAlone()
  provider = createProvider({ name: 'sandbox', url: alone.sandbox.url })
  token = alone.grant.access_token
  running = []
})
afterEach(async () => {
  for (const { serving } of running) await serving[Symbol.asyncDispose]()
  await alone[Symbol.asyncDispose]()
})

interface Relay {
  readonly serving: Serving
  readonly url: string
  /** What it said of its hook. */
  readonly lines: string[]
}

/** A relay with --hook, once it has said something of its hook. */
async function start({ env }: Shell, more: Record<string, string> = {}): Promise<Relay> {
  const lines: string[] = []
  let resume = (): void => {}
  const first = new Promise<void>((resolve) => (resume = resolve))
  const onHook = (event: HookEvent): void => {
    lines.push(hookText(event))
    resume()
  }
  const { context } = testContext({ env: { ...env, RELAY_PORT: '0', ...more } })
  const hooks = { repos: [REPO], user: USER, catchUp: false }
  const serving = await serveFor(context, { hooks, onHook })
  await first
  const base = more['RELAY_PUBLIC_URL'] ?? serving.url
  const relay = { serving, url: `${base}/webhook`, lines }
  running.push(relay)
  return relay
}
const stop = ({ serving }: Relay): PromiseLike<void> => serving[Symbol.asyncDispose]()
const copyOf = ({ home, env }: Shell): Shell => {
  const folder = emptyFolder()
  cpSync(home, folder, { recursive: true })
  return shell({ ...env, RELAY_HOME: folder }, folder)
}
const hooks = () => provider.hooks.list(token, REPO)
const urls = async () => new Set((await hooks()).map(({ url }) => url))
const deliveries = async ({ serving }: Relay): Promise<number> =>
  (await serving.relay.journal.after(0, 100)).filter(({ event }) => event === 'issue_comment').length
const comment = async (): Promise<void> => {
  await provider.comment(token, { ...REPO, issueNumber: 1, body: 'hello' })
  await alone.sandbox.idle()
}

describe('two relays with --hook on one repository', () => {
  it('each have a hook at an address of their own, from copies of one profile', async () => {
    const one = await start(copyOf(alone.shell))
    const two = await start(copyOf(alone.shell))
    expect(await urls()).toEqual(new Set([one.url, two.url]))
    await comment()
    expect([await deliveries(one), await deliveries(two)]).toEqual([1, 1])
    await stop(one)
    await stop(two)
    expect([one.lines, two.lines, await hooks()]).toEqual([
      [`hook of octo/demo created: ${one.url}`, 'hook of octo/demo removed'],
      [`hook of octo/demo created: ${two.url}`, 'hook of octo/demo removed'],
      [],
    ])
  })

  it('take the hook of a profile that was copied while it ran once, not in turn', async () => {
    const one = await start(alone.shell)
    // Another machine does not see the process of the first.
    const copy = copyOf(alone.shell)
    {
      await using store = await profileStore(copy)
      await store.delete(INSTANCE_KEY)
    }
    const two = await start(copy)
    expect([two.lines, await urls()]).toEqual([
      [`hook of octo/demo repaired (it led to ${one.url}): ${two.url}`],
      new Set([two.url]),
    ])
    // The first, which has no hook now, leaves that of the second alone, and makes its own at its next start.
    await stop(one)
    expect([one.lines, await urls()]).toEqual([[`hook of octo/demo created: ${one.url}`], new Set([two.url])])
    const again = await start(alone.shell)
    expect([again.lines, await urls()]).toEqual([
      [`hook of octo/demo created: ${again.url}`],
      new Set([again.url, two.url]),
    ])
    await comment()
    expect([await deliveries(again), await deliveries(two), two.lines.length]).toEqual([1, 1, 1])
  })

  it('share the hook of one address: the second says so, and leaves it at its end', async () => {
    const { env } = alone.shell
    const RELAY_WEBHOOK_SECRET = 'the-secret-of-both'
    const one = await start(alone.shell, { RELAY_WEBHOOK_SECRET })
    // A relay behind the same proxy, here the first one itself.
    const home = emptyFolder()
    const other = shell({ ...env, RELAY_HOME: home }, home)
    await keepToken(other, { accessToken: token, origin: alone.sandbox.url })
    const two = await start(other, { RELAY_WEBHOOK_SECRET, RELAY_PUBLIC_URL: one.serving.url })
    expect([two.lines, await urls()]).toEqual([
      [
        `hook of octo/demo is ready: ${one.url} (it was there before, and now has the webhook secret of this profile; another relay at this address needs the same)`,
      ],
      new Set([one.url]),
    ])
    await comment()
    expect(await deliveries(one)).toBe(1)
    await stop(two)
    expect([two.lines.length, await urls()]).toEqual([1, new Set([one.url])])
    await stop(one)
    expect(one.lines.at(-1)).toBe('hook of octo/demo removed')
  })
})
