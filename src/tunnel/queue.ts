import { setTimeout } from 'node:timers/promises'

/** What waits for its turn: one message at a time is looked at, and others have their turn in between. */
export interface Queue extends AsyncDisposable {
  /** False, and dropped, when there is no room: what came first is kept. */
  push(text: string): boolean
}

export interface QueueLimits {
  readonly messages: number
  /** Characters of all messages together; a single one may be larger. */
  readonly size: number
}

/**
 * Anybody may send to a channel, so what waits is bounded: more than a code host sends at once, but no more than is looked
 * at in some ten seconds, however it is made to be slow: that long a delivery waits that comes behind it.
 */
export const QUEUE_LIMITS: QueueLimits = { messages: 512, size: 16 * 1_048_576 }

/**
 * Has `handle`, which must not throw, take one message after the other, and say whether it was worth it. Others are given
 * the time that one took which was not, so that whoever sends nonsense gets half of the processor at most. Closing the
 * queue lets it finish what waits, at once.
 */
export function createQueue(handle: (text: string) => Promise<boolean>, limits = QUEUE_LIMITS): Queue {
  const waiting: string[] = []
  let size = 0
  let working: Promise<void> | undefined
  let closing = false
  const work = async (): Promise<void> => {
    for (let text = waiting.shift(); text !== undefined; text = waiting.shift()) {
      const began = performance.now()
      const worth = await handle(text)
      size -= text.length
      await setTimeout(worth || closing ? 0 : performance.now() - began)
    }
    working = undefined
  }
  return {
    push(text) {
      if (waiting.length >= limits.messages || (size > 0 && size + text.length > limits.size)) return false
      waiting.push(text)
      size += text.length
      working ??= work()
      return true
    },
    async [Symbol.asyncDispose]() {
      closing = true
      await working
    },
  }
}
