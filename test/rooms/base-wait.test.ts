import { setTimeout as wait } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, it } from 'vitest'
import { deadline, sleep, nearbyProbeDelay, probeDelay, createCached } from '../../src/base/wait.js'

describe('deadline', () => {
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
