import { sleep } from '../../src/base/abort.js'
import { expect } from 'vitest'
import { githubDelivery, post } from './delivery.js'
import { type TargetServer, valuesOf } from './target.js'

/** After a refusal a sender waits so many milliseconds, so that it does not take the processor from what it tests. */
const PAUSE_MS = 20

/** Senders that post deliveries of their own, one after the other, and keep a list of those that were acknowledged. */
export interface Senders {
  /** The ids that were answered 200, in the order of the answers. */
  readonly acknowledged: readonly string[]
  /** Every status so far; 0 for a request that got no answer. */
  readonly statuses: ReadonlySet<number>
  /** The longest time to an answer, in milliseconds. */
  readonly slowest: () => number
  /** Waits until so many more were acknowledged. */
  more(count: number, timeout: number): Promise<void>
  /** Resolves when each has its last answer. */
  stop(): Promise<void>
}

/** `count` senders to `url`. One that got no answer, or a refusal, goes on with its next delivery. */
export function startSenders(url: string, count: number): Senders {
  const acknowledged: string[] = []
  const statuses = new Set<number>()
  const stop = new AbortController()
  let slowest = 0
  const send = async (id: string): Promise<void> => {
    const began = performance.now()
    const status = await post(`${url}/webhook`, githubDelivery({ id })).then(
      (answer) => answer.status,
      () => 0,
    )
    slowest = Math.max(slowest, performance.now() - began)
    statuses.add(status)
    if (status === 200) acknowledged.push(id)
    else await sleep(PAUSE_MS, { signal: stop.signal }).catch(() => {})
  }
  const ended = Array.from({ length: count }, async (_, sender) => {
    for (let i = 0; !stop.signal.aborted; i++) await send(`${sender}-${i}`)
  })
  return {
    acknowledged,
    statuses,
    slowest: () => slowest,
    async more(count, timeout) {
      const wanted = acknowledged.length + count
      await expect.poll(() => acknowledged.length, { timeout }).toBeGreaterThanOrEqual(wanted)
    },
    async stop() {
      stop.abort()
      await Promise.all(ended)
    },
  }
}

/** The ids of the deliveries that reached a target, in order, with repetitions. */
export function idsAt({ received }: TargetServer): readonly string[] {
  return received.map((handed) => valuesOf(handed, 'x-github-delivery')[0] ?? '')
}

/** Waits until all of these reached the target. */
export async function haveReached(
  target: TargetServer,
  ids: readonly string[],
  timeout: number,
): Promise<void> {
  const missing = (): readonly string[] => {
    const there = new Set(idsAt(target))
    return ids.filter((id) => !there.has(id))
  }
  await expect.poll(missing, { timeout }).toEqual([])
}
