import { once } from 'node:events'
import { describe, expect, it } from 'vitest'
import { inTime, isTimeout, withTimeLimit } from '../../src/base/wait.js'

const timers = (): number => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
const { signal: never } = new AbortController()

describe('withTimeLimit', () => {
  it('gives what the work gives, and leaves no timer', async () => {
    const before = timers()
    await expect(withTimeLimit(60_000, never, async () => 7)).resolves.toBe(7)
    await expect(withTimeLimit(60_000, never, () => Promise.reject(new Error('why')))).rejects.toThrow('why')
    expect(timers()).toBe(before)
  })

  it('aborts the work at the limit', async () => {
    const reason = await withTimeLimit(20, never, async (signal) => {
      await once(signal, 'abort')
      return Object(signal.reason).name
    })
    expect(reason).toBe('TimeoutError')
  })

  it("aborts the work with the caller's signal, also one that has aborted already", async () => {
    const stop = new AbortController()
    const working = withTimeLimit(60_000, stop.signal, async (signal) => {
      await once(signal, 'abort')
      return signal.reason
    })
    stop.abort('stopped')
    await expect(working).resolves.toBe('stopped')
    await expect(withTimeLimit(60_000, stop.signal, async ({ aborted }) => aborted)).resolves.toBe(true)
  })
})

describe('inTime', () => {
  it('gives what the work gives, and leaves no timer', async () => {
    const before = timers()
    await expect(inTime(60_000, Promise.resolve(7))).resolves.toBe(7)
    await expect(inTime(60_000, Promise.reject(new Error('why')))).rejects.toThrow('why')
    expect(timers()).toBe(before)
  })

  it('fails at the limit, and ignores a failure of the work after it', async () => {
    let fail: (error: Error) => void = () => {}
    const working = new Promise<never>((_, reject) => (fail = reject))
    const error: unknown = await inTime(20, working).catch((thrown: unknown) => thrown)
    expect(isTimeout(error)).toBe(true)
    fail(new Error('too late'))
  })
})
