import { setTimeout } from 'node:timers/promises'

/** Queue of messages, which are handled one at a time. */
export interface Queue<Message> extends AsyncDisposable {
  /** Adds the message, or drops it and returns false if the queue is full. */
  push(message: Message): boolean
}

export interface QueueLimits {
  readonly messages: number
  /** Characters or bytes of all waiting messages together. A single message may be larger. */
  readonly size: number
}

/**
 * Anybody may send to a channel, so the queue is bounded. It holds more than a code host sends at once. Handling a full
 * queue takes some ten seconds, even if its messages are slow on purpose; a delivery behind them waits that long.
 */
export const QUEUE_LIMITS: QueueLimits = { messages: 512, size: 16 * 1_048_576 }

/**
 * Calls `handle`, which must not throw, with one message after the other. It returns whether the message was accepted.
 * After a refused message, the queue pauses for as long as that took, so that a flood uses at most half of the processor.
 * Disposing of the queue handles the remaining messages without pauses.
 */
export function createQueue<Message extends { readonly length: number }>(
  handle: (message: Message) => Promise<boolean>,
  limits = QUEUE_LIMITS,
): Queue<Message> {
  const waiting: Message[] = []
  let size = 0
  let working: Promise<void> | undefined
  let closing = false
  const work = async (): Promise<void> => {
    for (let message = waiting.shift(); message !== undefined; message = waiting.shift()) {
      const began = performance.now()
      const { length } = message
      // Only waiting messages count: a large one must not keep out those that arrive while it is handled.
      size -= length
      const accepted = await handle(message)
      await setTimeout(accepted || closing ? 0 : performance.now() - began)
    }
    working = undefined
  }
  return {
    push(message) {
      const { length } = message
      if (waiting.length >= limits.messages || (size > 0 && size + length > limits.size)) return false
      waiting.push(message)
      size += length
      working ??= work()
      return true
    },
    async [Symbol.asyncDispose]() {
      closing = true
      await working
    },
  }
}
