import { describe, expect, it } from 'vitest'
import { createQueue, QUEUE_LIMITS } from '../../src/tunnel/queue.js'

/** A promise and the function that resolves it. */
function gate() {
  let open = (): void => {}
  const opened = new Promise<void>((resolve) => (open = resolve))
  return { open, opened }
}

/** A queue whose messages wait for the disk until `store` was called, and what it handled. */
function storingQueue(limits: Partial<typeof QUEUE_LIMITS> = {}) {
  const handled: string[] = []
  const { open: store, opened } = gate()
  const queue = createQueue(
    (text: string) => {
      handled.push(text)
      return Promise.resolve({ accepted: opened.then(() => true) })
    },
    { ...QUEUE_LIMITS, ...limits },
  )
  return { queue, handled, store }
}

describe('the queue', () => {
  it('handles messages in order while earlier ones wait for the disk, and is closed once all are stored', async () => {
    const { queue, handled, store } = storingQueue()
    const all = Array.from({ length: 200 }, (_, i) => String(i))
    expect(all.map((text) => queue.push(text))).toEqual(all.map(() => undefined))
    await expect.poll(() => handled).toEqual(all)
    let isClosed = false
    const closed = queue[Symbol.asyncDispose]().then(() => (isClosed = true))
    await new Promise(setImmediate)
    expect(isClosed).toBe(false)
    store()
    await closed
  })

  it('lets only so many wait for the disk, and the others wait their turn', async () => {
    const { queue, handled, store } = storingQueue({ storing: 2 })
    for (const text of ['a', 'b', 'c']) void queue.push(text)
    await expect.poll(() => handled).toEqual(['a', 'b'])
    await new Promise(setImmediate)
    expect(handled).toEqual(['a', 'b'])
    store()
    await queue[Symbol.asyncDispose]()
    expect(handled).toEqual(['a', 'b', 'c'])
  })

  it.each([
    ['messages', { messages: 2 }],
    ['bytes', { bytes: 6 }],
  ])('drops nothing when it is full of %s, but asks for a pause until there is room', async (_, limits) => {
    const { queue, handled, store } = storingQueue(limits)
    expect(queue.push('abc')).toBe(undefined)
    let isReading = false
    const room = queue.push('def')?.then(() => (isReading = true))
    await new Promise(setImmediate)
    expect(isReading).toBe(false)
    store()
    await room
    expect(isReading).toBe(true)
    expect(queue.push('later')).toBe(undefined)
    await queue[Symbol.asyncDispose]()
    expect(handled).toEqual(['abc', 'def', 'later'])
  })

  it('accepts a message over the limit', async () => {
    const { queue, handled, store } = storingQueue({ bytes: 5 })
    const room = queue.push('abcdefgh')
    store()
    await room
    await queue[Symbol.asyncDispose]()
    expect(handled).toEqual(['abcdefgh'])
  })
})
