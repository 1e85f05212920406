import { describe, expect, it } from 'vitest'
import { createQueue } from '../../src/tunnel/queue.js'

/** A queue that handles messages only after `release` was called, and the handled messages. */
function pausedQueue(limits?: { readonly messages: number; readonly size: number }) {
  const handled: string[] = []
  let release = (): void => {}
  const released = new Promise<void>((resolve) => (release = resolve))
  const queue = createQueue(async (text: string) => {
    await released
    handled.push(text)
    return true
  }, limits)
  return { queue, handled, release }
}

describe('the queue', () => {
  it('handles messages in order, and is closed once it has handled all', async () => {
    const { queue, handled, release } = pausedQueue()
    const all = Array.from({ length: 500 }, (_, i) => String(i))
    expect(all.map((text) => queue.push(text)).every(Boolean)).toBe(true)
    release()
    await queue[Symbol.asyncDispose]()
    expect(handled).toEqual(all)
  })

  it('drops the newest messages if there are too many', async () => {
    const { queue, handled, release } = pausedQueue({ messages: 2, size: 1000 })
    expect(['in flight', 'a', 'b', 'c', 'd'].map((text) => queue.push(text))).toEqual([
      true,
      true,
      true,
      false,
      false,
    ])
    release()
    await queue[Symbol.asyncDispose]()
    expect(handled).toEqual(['in flight', 'a', 'b'])
    expect(queue.push('later')).toBe(true)
    await queue[Symbol.asyncDispose]()
  })

  it('counts the waiting messages towards the size, and not the one being handled', async () => {
    const { queue, handled, release } = pausedQueue({ messages: 100, size: 5 })
    expect(['handled', 'abc', 'de', 'f'].map((text) => queue.push(text))).toEqual([true, true, true, false])
    release()
    await queue[Symbol.asyncDispose]()
    expect(handled).toEqual(['handled', 'abc', 'de'])
  })

  it('accepts a message over the size limit if none waits', async () => {
    const { queue, handled, release } = pausedQueue({ messages: 100, size: 5 })
    expect(['a', 'abcdef', 'b'].map((text) => queue.push(text))).toEqual([true, true, false])
    release()
    await queue[Symbol.asyncDispose]()
    expect(handled).toEqual(['a', 'abcdef'])
  })
})
