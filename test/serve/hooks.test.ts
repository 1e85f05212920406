import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { openHost } from '../../src/codehost/hosts.js'
import type { CodeHost } from '../../src/codehost/host.js'
import type { HookEvent } from '../../src/serve/hook-event.js'
import { type HookPlan, startHooks } from '../../src/serve/hooks.js'
import { PayloadAddress } from '../../src/serve/tunnel.js'
import type { Serving } from '../../src/serve/serve.js'
import { type Alone, serveFor, startAlone, USER } from '../cli/rig.js'
import { testContext } from '../helpers/context.js'

const REPO = { owner: 'octo', repo: 'demo' }
const PLAN: HookPlan = { repos: [REPO], user: USER, catchUp: false }

let alone: Alone
let provider: CodeHost
let token: string
beforeEach(async () => {
  alone = await startAlone()
  provider = openHost({ name: 'sandbox', url: alone.sandbox.url })
  token = alone.grant.access_token
})
afterEach(() => alone[Symbol.asyncDispose]())

const urls = async (): Promise<string[]> => (await provider.as(token).hooks.list(REPO)).map(({ url }) => url)

/** A relay with these hooks, and what happens to them. */
async function start(over: Partial<HookPlan> = {}) {
  const events: HookEvent[] = []
  const waiting = new Set<() => void>()
  const { context } = testContext({ env: { ...alone.shell.env, RELAY_PORT: '0' } })
  const serving: Serving = await serveFor(context, {
    hooks: { ...PLAN, ...over },
    onHook(event) {
      events.push(event)
      for (const look of waiting) look()
    },
  })
  return {
    serving,
    states: () => events.map(({ state }) => state),
    async event<State extends HookEvent['state']>(state: State, count = 1) {
      for (;;) {
        const isWanted = (event: HookEvent): event is Extract<HookEvent, { state: State }> =>
          event.state === state
        const wanted = events.filter(isWanted)[count - 1]
        if (wanted) return wanted
        await new Promise<void>((resolve) => waiting.add(resolve))
      }
    },
    [Symbol.asyncDispose]: () => serving[Symbol.asyncDispose](),
  }
}

describe('the hooks of a running relay', () => {
  it.each([true, false])(
    'stay when another relay of the same service takes them over: %s',
    async (isKept) => {
      await using running = await start({ repos: [] })
      const { relay, settings, url } = running.serving
      const events: HookEvent[] = []
      const hooks = startHooks(relay, settings, PLAN, {
        address: new PayloadAddress(settings, url),
        lost: new AbortController().signal,
        hasSuccessor: () => Promise.resolve(isKept),
        onHook: (event) => events.push(event),
      })
      await expect.poll(() => events.map(({ state }) => state)).toEqual(['ready'])
      await hooks[Symbol.asyncDispose]()
      expect(await urls()).toEqual(isKept ? [`${url}/webhook`] : [])
    },
  )

  it('are made once the user has signed in', async () => {
    await alone.shell.run(['revoke'])
    await using running = await start()
    const { error, retries } = await running.event('failed')
    expect([error.kind, error.message, retries]).toEqual([
      'unauthenticated',
      expect.stringContaining('relay login'),
      true,
    ])
    token = await alone.sandbox.token('repo')
    const grant = { accessToken: token, expiresAt: Date.now() + 3_600_000, origin: alone.sandbox.url }
    await running.serving.relay.tokens.save(USER, grant)
    const { hook } = await running.event('ready')
    expect(await urls()).toEqual([hook.hook.url])
    expect(running.states()).toEqual(['failed', 'ready'])
  })

  it('are made after a failure of the code host, and given up where a person has to act', async () => {
    alone.sandbox.faults.next('hook', '502')
    const away = { owner: 'octo', repo: 'nowhere' }
    await using running = await start({ repos: [REPO, away] })
    await running.event('ready')
    const failures = [await running.event('failed'), await running.event('failed', 2)]
    expect(new Map(failures.map(({ error, retries }) => [error.kind, retries]))).toEqual(
      new Map([
        ['provider_failed', true],
        ['not_found', false],
      ]),
    )
  })

  it('go with relay, also when it stops while one is created', async () => {
    alone.sandbox.faults.next('hook', { kind: 'slow', ms: 0 })
    alone.sandbox.faults.next('hook', { kind: 'slow', ms: 300 })
    const running = await start()
    await running.serving[Symbol.asyncDispose]()
    expect(running.states()).toEqual(['ready', 'removed'])
    expect(await urls()).toEqual([])
  })

  it('are named when they cannot be removed, and used again', async () => {
    const first = await start()
    const { hook } = await first.event('ready')
    alone.sandbox.faults.always('hook', '502')
    await first.serving[Symbol.asyncDispose]()
    alone.sandbox.faults.clear()
    expect((await first.event('left')).error.kind).toBe('provider_failed')
    const second = await start()
    expect((await second.event('ready')).hook).toMatchObject({
      created: false,
      permanent: false,
      hook: { id: hook.hook.id },
    })
    await second.serving[Symbol.asyncDispose]()
    expect(await urls()).toEqual([])
  })

  it('stay when they were there before, with their address and events', async () => {
    const chosen = 'http://127.0.0.1:9/chosen'
    await alone.shell.run(['hook', 'add', 'octo/demo', '--url', chosen, '--events', 'push'])
    const running = await start()
    expect((await running.event('ready')).hook).toMatchObject({ repaired: [], hook: { events: ['push'] } })
    await running.serving[Symbol.asyncDispose]()
    expect([await urls(), running.states()]).toEqual([[chosen], ['ready']])
  })

  it.each([true, false])('that were not made are not named at the end, catchUp %s', async (catchUp) => {
    const running = await start({ repos: [{ owner: 'octo', repo: 'nowhere' }], catchUp })
    expect(await running.event('failed')).toMatchObject({ retries: false })
    await running.serving[Symbol.asyncDispose]()
    await alone.shell.run(['revoke', '--local'])
    const signedOut = await start({ catchUp })
    expect(await signedOut.event('failed')).toMatchObject({ error: { kind: 'unauthenticated' } })
    await signedOut.serving[Symbol.asyncDispose]()
    expect([running.states(), signedOut.states()]).toEqual([['failed'], ['failed']])
  })

  it('stay when relay hook add made them, also if they could not be looked after or it ran meanwhile', async () => {
    const url = 'http://127.0.0.1:9/webhook'
    await alone.shell.run(['hook', 'add', 'octo/demo', '--url', url])
    alone.sandbox.faults.next('hook', '502')
    const first = await start()
    await first.event('failed')
    await first.serving[Symbol.asyncDispose]()
    expect(await urls()).toEqual([url])
    await alone.shell.run(['hook', 'remove', 'octo/demo'])
    const second = await start()
    const { hook } = await second.event('ready')
    expect((await alone.shell.run(['hook', 'add', 'octo/demo', '--url', hook.hook.url])).code).toBe(0)
    await second.serving[Symbol.asyncDispose]()
    expect([second.states(), await urls()]).toEqual([['ready'], [hook.hook.url]])
  })

  it('are caught up from, and so are those that were made before', async () => {
    const first = await start({ catchUp: true })
    await first.event('caught up')
    await first.serving[Symbol.asyncDispose]()
    expect(first.states().at(-1)).toBe('kept')
    await provider.as(token).comment({ ...REPO, number: 1 }, 'meanwhile')
    await alone.sandbox.idle()
    await using second = await start({ repos: [], catchUp: true })
    expect((await second.event('caught up')).result).toMatchObject({ missing: 1, arrived: 1 })
    expect(second.states()).toEqual(['ready', 'missing', 'caught up'])
  })
})
