import { setImmediate as turn } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, it } from 'vitest'
import { silentLog } from '../../src/base/log.js'
import { systemClock } from '../../src/base/time.js'
import { type AttemptEvent, createHandOver } from '../../src/dispatch/hand-over.js'
import { systemTimer } from '../../src/dispatch/rests.js'
import { createRoute } from '../../src/dispatch/route.js'
import { parseMatch } from '../../src/journal/match.js'
import type { Entry } from '../../src/journal/delivery.js'

setFlagsFromString('--expose-gc')
const collectGarbage: () => void = runInNewContext('gc')

function entry(body: Uint8Array): Entry {
  const named = {
    provider: 'github',
    event: 'push',
    deliveryId: '1',
    hookId: '',
    action: null,
    repo: null,
    number: null,
  }
  return { n: 1, receivedAt: 0, ...named, headers: [], body, verifiedBy: 'current', duplicates: 0 }
}

it('holds no body while it is written down that the target has taken it', async () => {
  const route = createRoute(parseMatch('*'), { kind: 'http', url: 'http://localhost:1/' })
  const told: AttemptEvent[] = []
  let body: WeakRef<Uint8Array> | undefined
  let write = (): void => {}
  const handOver = createHandOver({
    journal: {
      read() {
        const bytes = new Uint8Array(1_000_000)
        body = new WeakRef(bytes)
        return entry(bytes)
      },
      handOns: () => ({ [route.id]: { state: 'waiting', tries: 0, since: 0 } }),
      attempts: () => [],
      record: () => new Promise<void>((resolve) => (write = resolve)),
    },
    route,
    target: {
      deliver: async () => ({ outcome: 'succeeded', status: 200, answer: new Uint8Array(), error: null }),
      async [Symbol.asyncDispose]() {},
    },
    time: { clock: systemClock, timer: systemTimer, random: Math.random },
    log: silentLog,
    onAttempt: (event) => told.push(event),
  })
  const step = await handOver(1, new AbortController().signal)
  // What was read in this turn of the event loop is let go with it.
  await turn()
  collectGarbage()
  expect([step.ended, body?.deref()]).toEqual([true, undefined])
  write()
  await step.recorded
  expect(told.map(({ n, attempt }) => [n, attempt.outcome])).toEqual([[1, 'succeeded']])
})
