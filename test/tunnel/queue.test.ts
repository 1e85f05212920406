import { describe, expect, it } from 'vitest'
import { createQueue } from '../../src/tunnel/queue.js'

/** A queue whose messages are taken once `release` is called; and what was taken. */
function held(limits?: { readonly messages: number; readonly size: number }) {
  const taken: string[] = []
  let release = (): void => {}
  const released = new Promise<void>((resolve) => (release = resolve))
  const queue = createQueue(async (text) => {
    await released
    taken.push(text)
    return true
  }, limits)
  return { queue, taken, release }
}

describe('the queue', () => {
  it('takes one after the other, and is closed once it has taken all', async () => {
    const { queue, taken, release } = held()
    const all = Array.from({ length: 500 }, (_, i) => String(i))
    expect(all.map((text) => queue.push(text)).every(Boolean)).toBe(true)
    release()
    await queue[Symbol.asyncDispose]()
    expect(taken).toEqual(all)
  })

  it('keeps what came first when there are too many', async () => {
    const { queue, taken, release } = held({ messages: 2, size: 1000 })
    expect(['under way', 'a', 'b', 'c', 'd'].map((text) => queue.push(text))).toEqual([
      true,
      true,
      true,
      false,
      false,
    ])
    release()
    await queue[Symbol.asyncDispose]()
    expect(taken).toEqual(['under way', 'a', 'b'])
    expect(queue.push('later')).toBe(true)
    await queue[Symbol.asyncDispose]()
  })

  it('counts what is under way to the size', async () => {
    const { queue, taken, release } = held({ messages: 100, size: 5 })
    expect(['abc', 'de', 'f'].map((text) => queue.push(text))).toEqual([true, true, false])
    release()
    await queue[Symbol.asyncDispose]()
    expect(taken).toEqual(['abc', 'de'])
  })

  it('takes one that is larger than all may be, when it is alone', async () => {
    const { queue, taken, release } = held({ messages: 100, size: 5 })
    expect(['abcdef', 'a'].map((text) => queue.push(text))).toEqual([true, false])
    release()
    await queue[Symbol.asyncDispose]()
    expect(taken).toEqual(['abcdef'])
  })
})
