import { createHash } from 'node:crypto'
import type { RawEvent } from './events.js'

/**
 * Passes a channel from an old connection to a new one, while both deliver. Each message counts once, and the order of the
 * channel is kept: the new connection is read only up to its first message until the old one has delivered all before it.
 */
export interface Handover {
  /** Call with each message of the old connection. True if the new connection delivers it, and everything after it. */
  fromOld(event: RawEvent): boolean
  /** Call with each message of the new connection. Resolves to whether the old one has not delivered it. */
  fromNew(event: RawEvent): Promise<boolean>
}

export interface OldConnection {
  readonly close: () => void
  readonly closed: Promise<void>
}

/**
 * Messages of the old connection that are remembered, which takes some 10 MiB. Of more, the first would count twice, until
 * the journal finds the duplicate.
 */
const MAX_SEEN = 65_536
/** New messages after which none is expected that the old connection has delivered. Servers may mix up neighbours. */
const MAX_MIXED = 256

/** Begins when the new connection is requested: from then on, both may deliver the same message. */
export function createHandover(old: OldConnection): Handover {
  const seen = new Set<string>()
  let first: string | undefined
  let isOver = false
  let unseen = 0
  void old.closed.then(() => (isOver = true))
  return {
    fromOld(event) {
      const digest = digestOf(event)
      if (digest === first) return true
      seen.add(digest)
      if (seen.size > MAX_SEEN) for (const oldest of seen) if (seen.delete(oldest)) break
      return false
    },
    async fromNew(event) {
      if (isOver && seen.size === 0) return true
      const digest = digestOf(event)
      if (seen.delete(digest)) {
        // The old connection has got as far as this one, which delivers all that follows.
        old.close()
        await old.closed
        return false
      }
      if (!isOver) {
        first = digest
        await old.closed
      } else if (++unseen > MAX_MIXED) seen.clear()
      return true
    },
  }
}

const DATA = 'data:'

/** Digest of the message alone: each connection may number its events in its own way. */
function digestOf({ blocks }: RawEvent): string {
  const hash = createHash('sha256')
  for (const [i, block] of blocks.entries()) {
    const start = i === 0 ? Buffer.from(block.buffer, block.byteOffset, block.length).indexOf(DATA) : 0
    hash.update(block.subarray(Math.max(0, start)))
  }
  return hash.digest('base64url')
}
