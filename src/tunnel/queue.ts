import { setTimeout } from 'node:timers/promises'
import { createTurns } from '../base/turns.js'

/** Queue of messages, which are handled in order. */
export interface Queue<Message> extends AsyncDisposable {
  /** Adds the message. If that fills the queue, returns a promise for room, and the caller reads no further until then. */
  push(message: Message): Promise<void> | undefined
}

/** How far a message has been handled. */
export interface Handling {
  /** Whether the message was accepted. Resolves once the delivery is on disk or the message is refused. Does not reject. */
  readonly accepted: Promise<boolean>
}

export interface QueueLimits {
  /** Messages in the queue, including those that wait for the disk. */
  readonly messages: number
  /** Bytes of these messages together. A single message may be larger. */
  readonly bytes: number
  /** Messages that wait for the disk at the same time. */
  readonly storing: number
}

const MIB = 1_048_576
/**
 * The queue keeps what the server sends while relay is busy. smee's server holds what relay does not read, but gosmee's
 * drops all beyond 100 messages, so the limits are generous: 4,000 GitHub pushes. The disk gets enough messages to share
 * one flush (256), and few enough that none waits for the disk's time limit (4 s).
 */
export const QUEUE_LIMITS: QueueLimits = { messages: 16_384, bytes: 32 * MIB, storing: 256 }
/** Milliseconds. A timer takes at least one, so shorter pauses are added up. */
const MIN_PAUSE_MS = 5

/**
 * Calls `handle`, which must not throw, with one message after the other. While one waits for the disk, the next is
 * handled, so that they share commits. After a refused message, the queue pauses for as long as that took, so that a
 * flood uses at most half of the processor. Disposing of the queue handles the remaining messages without pauses.
 */
export function createQueue<Message extends { readonly length: number }>(
  handle: (message: Message) => Promise<Handling>,
  limits = QUEUE_LIMITS,
): Queue<Message> {
  const waiting: Message[] = []
  const held = createGate({ count: limits.messages, bytes: limits.bytes })
  const storing = createGate({ count: limits.storing, bytes: limits.bytes })
  let working: Promise<void> | undefined
  let closing = false
  let pause = 0
  const release = async (message: Message, accepted: Promise<boolean>, took: number): Promise<void> => {
    if (!(await accepted)) pause += took
    storing.remove(message)
    held.remove(message)
  }
  const take = async (message: Message): Promise<void> => {
    const began = performance.now()
    const { accepted } = await handle(message)
    const took = performance.now() - began
    storing.add(message)
    void release(message, accepted, took)
  }
  const work = async (): Promise<void> => {
    const turn = createTurns()
    for (let message = waiting.shift(); message !== undefined; message = waiting.shift()) {
      await take(message)
      await (storing.room() ?? turn())
      if (pause < MIN_PAUSE_MS || closing) continue
      await setTimeout(pause)
      pause = 0
    }
    working = undefined
  }
  return {
    push(message) {
      waiting.push(message)
      held.add(message)
      working ??= work()
      return held.room()
    },
    async [Symbol.asyncDispose]() {
      closing = true
      await working
      await storing.empty()
    },
  }
}

/** Counts messages and their bytes, and lets others wait until there is room. */
function createGate(limit: { readonly count: number; readonly bytes: number }) {
  let count = 0
  let bytes = 0
  const resumes: (() => void)[] = []
  const until = async (holds: () => boolean): Promise<void> => {
    while (!holds()) await new Promise<void>((resolve) => resumes.push(resolve))
  }
  const hasRoom = (): boolean => count < limit.count && bytes < limit.bytes
  return {
    add({ length }: { readonly length: number }): void {
      count++
      bytes += length
    },
    remove({ length }: { readonly length: number }): void {
      count--
      bytes -= length
      for (const resume of resumes.splice(0)) resume()
    },
    room: (): Promise<void> | undefined => (hasRoom() ? undefined : until(hasRoom)),
    empty: () => until(() => count === 0),
  }
}
