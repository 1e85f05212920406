import { expect, vi } from 'vitest'
import type { TestSandbox } from '../../src/testing/index.js'
import type { Ended, Program } from './program.js'

/** The request is answered as usual. */
export const NOW = { kind: 'slow', ms: 0 } as const
/** The request has no effect during the test. */
export const SLOW = { kind: 'slow', ms: 60_000 } as const
/** The request has its effect, and its answer comes when nothing waits for it any more. What it makes the sandbox send comes after. */
export const LATE = { kind: 'late', ms: 5_000 } as const

/** How a one-shot command ends after Ctrl-C. */
export const INTERRUPTED = { code: 130, signal: null, out: '' }

/** Waits until the sandbox has had such a request, after the first `since`. */
export async function asked(sandbox: TestSandbox, wanted: RegExp, since = 0): Promise<void> {
  await vi.waitFor(
    () => {
      const requests = sandbox.requests.slice(since).map(({ method, path }) => `${method} ${path}`)
      expect(requests).toContainEqual(expect.stringMatching(wanted))
    },
    { timeout: 20_000 },
  )
}

/** Presses Ctrl-C once `reached` has resolved. */
export async function interrupt(program: Program, reached: Promise<unknown>): Promise<Ended> {
  await reached
  return program.stop('SIGINT')
}
