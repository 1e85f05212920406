import { getEventListeners, once } from 'node:events'
import { setTimeout as wait } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, it } from 'vitest'
import {
  deadline,
  onAbort,
  sleep,
  nearbyProbeDelay,
  probeDelay,
  createCached,
  inTime,
  isTimeout,
  withTimeLimit,
} from '../../src/base/wait.js'

describe('deadline', () => {
  it("aborts with the caller's reason, or with a time-out", async () => {
    const controller = new AbortController()
    const reason = new Error('enough')
    const signal = deadline(60_000, controller.signal)
    controller.abort(reason)
    expect(signal.reason).toBe(reason)
    const late = deadline(10)
    await once(late, 'abort')
    expect(late.reason).toMatchObject({ name: 'TimeoutError' })
  })

  it('fires although only its listener refers to it and garbage is collected', async () => {
    setFlagsFromString('--expose-gc')
    const collect: () => void = runInNewContext('gc')
    const caller = new AbortController()
    const fired = new Promise<string>((resolve) => {
      deadline(200, caller.signal).addEventListener('abort', () => resolve('fired'))
    })
    for (let round = 0; round < 5; round++) {
      await wait(10)
      collect()
    }
    expect(await Promise.race([fired, wait(2_000, 'never fired')])).toBe('fired')
  })
})

describe('onAbort', () => {
  it('calls each that still waits once, with one listener for all', () => {
    const controller = new AbortController()
    const called: string[] = []
    const ignore = ['a', 'b', 'c'].map((name) => onAbort(controller.signal, () => called.push(name)))
    expect(getEventListeners(controller.signal, 'abort').length).toBe(1)
    ignore[1]?.()
    controller.abort()
    ignore[0]?.()
    expect(called).toEqual(['a', 'c'])
  })

  it('calls at once when the signal has aborted', () => {
    const called: string[] = []
    onAbort(AbortSignal.abort(), () => called.push('a'))()
    expect(called).toEqual(['a'])
  })
})

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

interface Read {
  readonly resolve: (value: string) => void
  readonly reject: (error: Error) => void
}

/** A source whose reads end when the test says so. */
function source() {
  const reads: Read[] = []
  return { reads, read: () => new Promise<string>((resolve, reject) => reads.push({ resolve, reject })) }
}

describe('a cached value', () => {
  it('is read once for all that ask during the read, however long it takes, and until it is old', async () => {
    const { reads, read } = source()
    const get = createCached(60_000, read)
    const first = get()
    await sleep(5)
    const second = get()
    reads[0]?.resolve('a')
    expect([await first, await second, await get()]).toEqual(['a', 'a', 'a'])
    expect(reads.length).toBe(1)
  })

  it('is read again when it is old', async () => {
    const { reads, read } = source()
    const get = createCached(0, read)
    const first = get()
    reads[0]?.resolve('a')
    await first
    const second = get()
    reads[1]?.resolve('b')
    expect(await second).toBe('b')
  })

  it('is read again after a failure', async () => {
    const { reads, read } = source()
    const get = createCached(60_000, read)
    const first = get()
    reads[0]?.reject(new Error('away'))
    await expect(first).rejects.toThrow('away')
    const second = get()
    reads[1]?.resolve('b')
    expect([await second, reads.length]).toEqual(['b', 2])
  })
})

it('the wait for a target that is down doubles from a second to a minute, and varies by a fifth', () => {
  const delays = Array.from({ length: 9 }, (_, i) => probeDelay(i + 1, () => 0.5))
  expect(delays).toEqual([1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000, 60_000])
  expect([probeDelay(1, () => 0), probeDelay(5000, () => 1)]).toEqual([800, 72_000])
  const nearby = [0, 59_999, 60_000, 86_400_000].map((downFor) => nearbyProbeDelay(downFor, () => 0.5))
  expect(nearby).toEqual([1000, 1000, 5000, 5000])
})
