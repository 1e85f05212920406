import { setImmediate } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { inTurns, type Steps } from '../../src/base/turns.js'

/** Longer than a third of a turn. */
const STEP_MS = 4

function spin(): void {
  const end = performance.now() + STEP_MS
  while (performance.now() < end) continue
}

it('work that is done at the same time shares one turn', async () => {
  const done = new AbortController()
  let turn = 0
  const stepsOfTurn = new Map<number, number>()
  function* work(): Steps<void> {
    for (let step = 0; step < 3; step++) {
      stepsOfTurn.set(turn, (stepsOfTurn.get(turn) ?? 0) + 1)
      spin()
      yield
    }
  }
  const counting = (async () => {
    while (!done.signal.aborted) {
      await setImmediate()
      turn++
    }
  })()
  await Promise.all(Array.from({ length: 20 }, () => inTurns(work())))
  done.abort()
  await counting
  const counts = [...stepsOfTurn.values()]
  expect(counts.reduce((sum, count) => sum + count)).toBe(60)
  // 10 ms are over after three steps of 4 ms; the count may begin anew within what is counted here as one turn.
  expect(Math.max(...counts)).toBeLessThanOrEqual(6)
})
