import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { openHost } from '../../src/codehost/hosts.js'
import type { CodeHost } from '../../src/codehost/host.js'
import type { RegisteredApp } from '../../src/codehost/host.js'
import type { HookEvent } from '../../src/serve/hook-event.js'
import type { HookPlan } from '../../src/serve/hooks.js'
import type { Serving } from '../../src/serve/serve.js'
import { type Alone, profileStore, serveFor, startAlone, USER } from '../cli/rig.js'
import { installApp, makeApp, storeApp } from '../helpers/app.js'
import { testContext } from '../helpers/context.js'
import { entriesOf } from '../helpers/journal.js'
import { textOf } from '../helpers/serve.js'

const REPO = { owner: 'octo', repo: 'demo' }
const BEFORE = 'http://127.0.0.1:9/before'
const CATCH_UP: HookPlan = { repos: [], user: USER, catchUp: true }
const NAME = 'relay-test'

let alone: Alone
let provider: CodeHost
let made: RegisteredApp
beforeEach(async () => {
  alone = await startAlone()
  const { sandbox, shell } = alone
  provider = openHost({ name: 'sandbox', url: sandbox.url })
  made = await makeApp(sandbox.url, { url: BEFORE, active: true })
  await using store = await profileStore(shell)
  await storeApp(store, sandbox.url, made, BEFORE)
})
afterEach(() => alone[Symbol.asyncDispose]())

/** Makes the App send so many deliveries, and waits for their end. */
async function comment(...texts: string[]): Promise<void> {
  for (const body of texts) {
    await provider.as(alone.grant.access_token).comment({ ...REPO, number: 1 }, body)
    await alone.sandbox.idle()
  }
}

/** A relay, and what happens to the webhook of its App. */
async function start(hooks?: HookPlan) {
  const events: HookEvent[] = []
  const waiting = new Set<() => void>()
  const { context } = testContext({ env: { ...alone.shell.env, RELAY_PORT: '0' } })
  const serving: Serving = await serveFor(context, {
    ...(hooks && { hooks }),
    onHook(event) {
      events.push(event)
      for (const look of waiting) look()
    },
  })
  return {
    serving,
    events,
    async event<State extends HookEvent['state']>(state: State) {
      for (;;) {
        const isWanted = (event: HookEvent): event is Extract<HookEvent, { state: State }> =>
          event.state === state
        const wanted = events.find(isWanted)
        if (wanted) return wanted
        await new Promise<void>((resolve) => waiting.add(resolve))
      }
    },
    async texts(): Promise<unknown[]> {
      const entries = await entriesOf(serving.relay.journal)
      return entries.flatMap((entry) => JSON.parse(textOf(entry)).comment?.body ?? [])
    },
    [Symbol.asyncDispose]: () => serving[Symbol.asyncDispose](),
  }
}

describe("the App's webhook, while relay runs", () => {
  it('leads to it from the start, and sends with its secret', async () => {
    await installApp(made.installUrl)
    await using running = await start()
    const url = `${running.serving.url}/webhook`
    expect(await running.event('leads here')).toEqual({
      app: NAME,
      state: 'leads here',
      url,
      repaired: [`it led to ${BEFORE}`],
    })
    await comment('hello')
    expect(await running.texts()).toEqual(['hello'])
  })

  it('is tried again after a failure, and given up where a person has to act', async () => {
    alone.sandbox.faults.next('hook', '502')
    await using running = await start()
    expect(await running.event('failed')).toMatchObject({ app: NAME, retries: true })
    await running.event('leads here')
    const theirs = 'http://127.0.0.1:9/theirs'
    const { current: secret } = running.serving.settings.webhookSecrets
    await provider.apps?.as(made.app).changeHook({ url: theirs, secret })
    await running.serving[Symbol.asyncDispose]()
    await using later = await start(CATCH_UP)
    expect(await later.event('failed')).toMatchObject({ error: { kind: 'conflict' }, retries: false })
    expect(later.events).toHaveLength(1)
  })
})

describe("the log of the App's webhook", () => {
  it('is caught up from, in order, each once, with limits and failures in the way', async () => {
    await installApp(made.installUrl)
    await comment('one', 'two', 'three')
    const body = JSON.stringify({ message: 'You have exceeded a secondary rate limit.' })
    const limit = { kind: 'answer', status: 403, headers: { 'Retry-After': '1' }, body } as const
    for (const operation of ['deliveries', 'redeliver'] as const) alone.sandbox.faults.next(operation, limit)
    alone.sandbox.faults.next('redeliver', '502')
    {
      await using running = await start(CATCH_UP)
      expect(await running.event('caught up')).toMatchObject({
        app: NAME,
        // The installation's own, too.
        result: { missing: 4, arrived: 4, failed: [] },
      })
      expect(running.events.map(({ state }) => state)).toEqual(['leads here', 'missing', 'caught up'])
      expect(await running.texts()).toEqual(['one', 'two', 'three'])
    }
    await using again = await start(CATCH_UP)
    expect(await again.event('caught up')).toMatchObject({ result: { missing: 0 } })
  })

  it('is tried again when the code host fails for longer', async () => {
    await installApp(made.installUrl)
    await comment('one')
    for (let n = 0; n < 4; n++) alone.sandbox.faults.next('deliveries', 'reset')
    await using running = await start(CATCH_UP)
    expect(await running.event('not caught up')).toMatchObject({
      app: NAME,
      retries: true,
      error: { kind: 'provider_failed' },
    })
    expect(await running.event('caught up')).toMatchObject({ result: { arrived: 2 } })
  }, 40_000)

  it('is given up when the App was deleted meanwhile, and that is said once', async () => {
    await using running = await start(CATCH_UP)
    await running.event('caught up')
    await running.serving[Symbol.asyncDispose]()
    await using store = await profileStore(alone.shell)
    await store.delete('setup')
    await storeApp(store, alone.sandbox.url, { ...made, app: { ...made.app, id: 999 } }, BEFORE)
    await using later = await start(CATCH_UP)
    expect(await later.event('failed')).toMatchObject({ error: { kind: 'gone' }, retries: false })
    expect(later.events).toHaveLength(1)
  })
})
