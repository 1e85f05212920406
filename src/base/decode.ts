import { isUtf8 } from 'node:buffer'

/** Error for bytes that are not readable text. The message completes "<file> …" and quotes none of the content. */
export class NotText extends Error {
  override readonly name = 'NotText'
}

/**
 * Byte order marks (Unicode 16, section 23.8). UTF-32 comes first, since its little-endian mark begins like that of
 * UTF-16.
 */
const MARKS: readonly (readonly [
  encoding: 'UTF-32' | 'UTF-16LE' | 'UTF-16BE' | 'UTF-8',
  mark: Uint8Array,
])[] = [
  ['UTF-32', Buffer.of(0xff, 0xfe, 0, 0)],
  ['UTF-32', Buffer.of(0, 0, 0xfe, 0xff)],
  ['UTF-16LE', Buffer.of(0xff, 0xfe)],
  ['UTF-16BE', Buffer.of(0xfe, 0xff)],
  ['UTF-8', Buffer.of(0xef, 0xbb, 0xbf)],
]

const LONE_SURROGATE = /\p{Cs}/u
const SAVE = 'Save it as UTF-8'
const HAS_NUL = `has NUL characters: it is UTF-16 or UTF-32 without a mark, or no text. ${SAVE}`

/**
 * Decodes text from an editor, a shell or a vault: UTF-8, or UTF-16 with a byte order mark, as PowerShell and Notepad
 * write it. Byte order marks are removed, also in the middle, where files were concatenated. All text that a user gives
 * to relay is decoded here.
 * @throws NotText for any other encoding, and for a NUL
 */
export function decodeText(bytes: Uint8Array): string {
  const text = decode(bytes)
  if (text.includes('\0')) throw new NotText(HAS_NUL)
  return text.replaceAll(/^\uFEFF+/gm, '')
}

/**
 * Converts text that begins with a byte order mark, such as a body saved by an editor, to UTF-8 without one. Other
 * bytes are returned unchanged.
 */
export function withoutMark(bytes: Uint8Array): Uint8Array {
  if (markOf(bytes) === undefined) return bytes
  try {
    return Buffer.from(decodeText(bytes))
  } catch {
    return bytes
  }
}

function markOf(bytes: Uint8Array) {
  return MARKS.find(([, mark]) => mark.every((byte, i) => bytes[i] === byte))?.[0]
}

function decode(given: Uint8Array): string {
  const bytes = Buffer.from(given.buffer, given.byteOffset, given.byteLength)
  const encoding = markOf(bytes) ?? 'UTF-8'
  if (encoding === 'UTF-32') throw new NotText(`is UTF-32. ${SAVE}`)
  if (encoding === 'UTF-8') {
    if (bytes.includes(0)) throw new NotText(HAS_NUL)
    if (isUtf8(bytes)) return bytes.toString()
    throw new NotText(`is not UTF-8, but perhaps Latin-1 or Windows-1252. ${SAVE}`)
  }
  const whole = bytes.length % 2 === 0
  const ordered = encoding === 'UTF-16BE' && whole ? Buffer.from(bytes).swap16() : bytes
  const text = ordered.toString('utf16le')
  if (whole && !LONE_SURROGATE.test(text)) return text
  throw new NotText(`is ${encoding} that is cut off or damaged. ${SAVE}`)
}
