import { isUtf8 } from 'node:buffer'

/** First bytes of compressed bodies: RFC 1952, and RFC 8878 section 3.1.1. */
const COMPRESSED: readonly (readonly [name: string, start: readonly number[]])[] = [
  ['gzip', [0x1f, 0x8b]],
  ['zstd', [0x28, 0xb5, 0x2f, 0xfd]],
]
/** Byte order marks, the longer ones first. */
const MARKS: readonly (readonly [name: string, start: readonly number[]])[] = [
  ['in UTF-8 with a byte order mark', [0xef, 0xbb, 0xbf]],
  ['in UTF-32', [0xff, 0xfe, 0, 0]],
  ['in UTF-32', [0, 0, 0xfe, 0xff]],
  ['in UTF-16', [0xff, 0xfe]],
  ['in UTF-16', [0xfe, 0xff]],
]
/** Bytes from which a format is recognized. */
const SAMPLE = 1024
const NUL = 0

/**
 * Names the format of a body that is not JSON in UTF-8, from its bytes alone, to follow the words "the body is". Undefined
 * for text in UTF-8 that is no markup. Some senders use these formats, so such a body is no damaged JSON.
 */
export function formatOf(body: Uint8Array): string | undefined {
  const known = [...MARKS, ...COMPRESSED].find(([, start]) => start.every((byte, at) => body[at] === byte))
  if (known) return known[0]
  if (isDeflated(body)) return 'deflate'
  const sample = Buffer.from(body.subarray(0, SAMPLE))
  if (isUtf16(sample)) return 'in UTF-16'
  if (isUtf8(body)) return markupOf(sample.toString())
  // Text has no control characters but white space.
  const isText = sample.every((byte) => byte >= 0x20 || (byte >= 0x09 && byte <= 0x0d))
  return isText ? 'in another charset than UTF-8, perhaps windows-1252' : 'not text'
}

/** RFC 1950 section 2.2: CM 8, a window of at most 32 KiB, and a header that is a multiple of 31. */
function isDeflated([first = 0, second = 0]: Uint8Array): boolean {
  return (first & 0x0f) === 8 && first >> 4 <= 7 && (first * 256 + second) % 31 === 0 && second > 0x7e
}

/** True if each second byte of the text is a NUL, on one side. */
function isUtf16(sample: Buffer): boolean {
  if (sample.length < 4) return false
  const pairs = sample.subarray(0, 8)
  return [0, 1].some((side) => pairs.every((byte, at) => (byte === NUL) === (at % 2 === side)))
}

function markupOf(text: string): string | undefined {
  if (!/^\s*<[!?A-Za-z]/.test(text)) return undefined
  return /^\s*<(?:!doctype html|html)\b/i.test(text) ? 'HTML' : 'XML'
}
