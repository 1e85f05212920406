import { setImmediate as onNextTurn } from 'node:timers'
import { setImmediate } from 'node:timers/promises'

/**
 * Milliseconds of work in a row. With the longest single step (some 20 ms) this stays below 50 ms, the limit for which work on
 * unverified input may block the event loop.
 */
const TURN_MS = 10

/** Milliseconds of this work since the event loop last ran. Shared by all work, since many small pieces would add up. */
let used = 0
let reset: NodeJS.Immediate | undefined

function count(ms: number): void {
  used += ms
  // Runs before the immediates of the work that waits for a turn.
  reset ??= onNextTurn(() => {
    used = 0
    reset = undefined
  })
}

/** Lets the event loop run if this turn is used up. */
async function nextTurn(): Promise<void> {
  while (isOver()) await setImmediate()
}

function isOver(): boolean {
  return used >= TURN_MS
}

/** Returns a function to call between two steps of work. If it returns a promise, awaiting that lets other work run. */
export function createTurns(): () => Promise<void> | undefined {
  let began = performance.now()
  const next = async (): Promise<void> => {
    await nextTurn()
    began = performance.now()
  }
  return () => {
    const now = performance.now()
    count(now - began)
    began = now
    return isOver() ? next() : undefined
  }
}

/** Work in short steps: yields between steps, and returns its result. */
export type Steps<Result> = Generator<void, Result>

/** Runs the steps and lets other work run in between. */
export async function inTurns<Result>(steps: Steps<Result>): Promise<Result> {
  for (;;) {
    if (isOver()) await nextTurn()
    const began = performance.now()
    const step = steps.next()
    count(performance.now() - began)
    if (step.done) return step.value
  }
}

/** Runs the steps without a pause, where nothing else waits. */
export function atOnce<Result>(steps: Steps<Result>): Result {
  for (;;) {
    const step = steps.next()
    if (step.done) return step.value
  }
}
