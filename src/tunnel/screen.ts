import { createTurns } from '../base/turns.js'
import { SIGNATURE_HEADER } from '../webhook/old-signature.js'
import type { RawEvent } from './events.js'

const NAME = Buffer.from(`"${SIGNATURE_HEADER}"`)
/** A member of the message: servers write the names of headers in lower case, and some write a list of values. */
const MEMBER = new RegExp(`^"${SIGNATURE_HEADER}"\\s*:\\s*\\[?\\s*"sha256=[0-9a-f]{64}"`)
/** Bytes that a member with its white space may take. */
const MAX_MEMBER = 256

/**
 * Whether a message has a well-formed signature header. Reads bytes only: 7 KB take some microseconds, so that messages
 * without one cost next to nothing. May be true for a message that has such a member elsewhere, but never false for one
 * that has the header.
 */
export async function hasSignature({ blocks }: RawEvent): Promise<boolean> {
  const turn = createTurns()
  let end = Buffer.alloc(0)
  for (const block of blocks) {
    await turn()
    // A member can lie across two blocks.
    const bytes =
      end.length === 0
        ? Buffer.from(block.buffer, block.byteOffset, block.length)
        : Buffer.concat([end, block])
    if (findsMember(bytes)) return true
    end = bytes.subarray(-MAX_MEMBER)
  }
  return false
}

function findsMember(bytes: Buffer): boolean {
  for (let at = bytes.indexOf(NAME); at !== -1; at = bytes.indexOf(NAME, at + NAME.length))
    if (MEMBER.test(bytes.toString('latin1', at, at + MAX_MEMBER))) return true
  return false
}
