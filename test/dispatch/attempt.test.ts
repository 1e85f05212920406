import { setImmediate as turn } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, it } from 'vitest'
import { silentLog } from '../../src/base/log.js'
import { systemClock } from '../../src/base/time.js'
import { type AttemptEvent, createAttempt } from '../../src/dispatch/attempt.js'
import { systemTimer } from '../../src/dispatch/retry-timers.js'
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

it('holds no body while the end of an attempt is recorded', async () => {
  const route = createRoute(parseMatch('*'), { kind: 'http', url: 'http://localhost:1/' })
  const events: AttemptEvent[] = []
  let body: WeakRef<Uint8Array> | undefined
  let resolveWrite = (): void => {}
  const attemptOnce = createAttempt({
    journal: {
      async read() {
        const bytes = new Uint8Array(1_000_000)
        body = new WeakRef(bytes)
        return entry(bytes)
      },
      forwards: async () => ({ [route.id]: { status: 'waiting', tries: 0, since: 0 } }),
      attempts: async () => [],
      record: () => new Promise<void>((resolve) => (resolveWrite = resolve)),
    },
    route,
    target: {
      deliver: async () => ({ outcome: 'succeeded', status: 200, answer: new Uint8Array(), error: null }),
      async [Symbol.asyncDispose]() {},
    },
    time: { clock: systemClock, ages: systemClock, timer: systemTimer, random: Math.random },
    log: silentLog,
    onAttempt: (event) => events.push(event),
  })
  const { signal } = new AbortController()
  const result = await attemptOnce(1, { signal, ready: async () => true })
  // What was read in this turn of the event loop is released with it.
  await turn()
  collectGarbage()
  expect([result.ended, body?.deref()]).toEqual([true, undefined])
  resolveWrite()
  await result.recorded
  expect(events.map(({ n, attempt }) => [n, attempt.outcome])).toEqual([[1, 'succeeded']])
})
