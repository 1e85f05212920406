import { fieldBeforeData, type RawEvent } from './events.js'
import type { Handover } from './handover.js'
import type { Progress } from './progress.js'
import type { Queue } from './queue.js'
import { hasSignature } from './screen.js'

/** A signed message of a channel. */
export interface Received {
  readonly event: RawEvent
  /** Bytes. */
  readonly length: number
  /** The server's id of the event. */
  readonly id: string | undefined
}

export interface IngressParts {
  readonly queue: Queue<Received>
  readonly progress: Progress
  /** Reports a message that has no well-formed signature. */
  readonly refuseUnsigned: (event: RawEvent) => Promise<void>
  /** Whether this is the message that relay has sent to itself. */
  readonly isRoundTrip: (event: RawEvent) => boolean
  /** Called when the server says that it no longer has all messages after the last one read. */
  readonly onGap: () => void
}

/** The connections that a connection replaces, and by which it is replaced. */
export interface Links {
  readonly older: Handover | undefined
  newer: Handover | undefined
}

/** What gosmee's server sends if its stream has lost messages after `Last-Event-ID`. */
const GAP = 'gosmee-gap'

/**
 * Entry point for the events of a connection. A message without a well-formed signature goes no further: it takes no place in
 * the queue. Resolves once there is room for another event. `close` is called if the connection is no longer needed.
 */
export function createIngress(parts: IngressParts) {
  const { queue, progress, refuseUnsigned, isRoundTrip, onGap } = parts
  return async (event: RawEvent, { older, newer }: Links, close: () => void): Promise<void> => {
    if (!(await hasSignature(event))) {
      if (fieldBeforeData(event, 'event') === GAP) onGap()
      else await refuseUnsigned(event)
      return
    }
    if (older && !(await older.fromNew(event))) return
    // The message to itself was sent when the newer connection was open.
    const isOwn = isRoundTrip(event)
    if (newer && (isOwn || newer.fromOld(event))) {
      close()
      return
    }
    const id = fieldBeforeData(event, 'id')
    progress.read(id, isOwn)
    await queue.push({ event, length: event.length, id })
  }
}
