import { describe, expect, it } from 'vitest'
import { sleep, createCached } from '../../src/base/wait.js'

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
