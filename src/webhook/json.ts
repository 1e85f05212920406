import { isAscii, isUtf8 } from 'node:buffer'
import { JsonScanner, malformed, type Outline, type Wanted } from './json-scanner.js'

/**
 * Reads bytes as JSON, strictly: well-formed UTF-8 without a byte order mark, one value of any type and nothing
 * after it but white space (RFC 8259), arrays and objects at most 1,000 deep.
 * @throws RelayError `invalid_event` otherwise. The message and cause quote nothing of the text.
 */
export function parseJson(bytes: Uint8Array): unknown {
  outlineOf(bytes)
  // The same text where all is ASCII, and made in an eighth of the time.
  return JSON.parse(asBuffer(bytes).toString(isAscii(bytes) ? 'latin1' : 'utf8'))
}

/**
 * What is wanted of the JSON object that the bytes are; nothing of any other JSON. Takes half the time of {@link parseJson}, or less.
 * @throws RelayError `invalid_event` when {@link parseJson} does.
 */
export function outlineOf(bytes: Uint8Array, wanted: readonly Wanted[] = []): Outline {
  if (!isUtf8(bytes)) throw malformed('not UTF-8')
  return new JsonScanner(bytes).scan(wanted)
}

/** Whether {@link parseJson} reads the text. */
export function isJson(text: string): boolean {
  try {
    outlineOf(Buffer.from(text))
    return true
  } catch {
    return false
  }
}

function asBuffer({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength)
}

/** Where the string ends that begins at `start`; the text's end if it does not. */
export function endOfString(text: string, start: number): number {
  let end = text.indexOf('"', start + 1)
  while (end !== -1 && isEscaped(text, end)) end = text.indexOf('"', end + 1)
  return end === -1 ? text.length : end
}

function isEscaped(text: string, at: number): boolean {
  let backslash = at
  while (text.charCodeAt(backslash - 1) === 0x5c) backslash--
  return (at - backslash) % 2 === 1
}
