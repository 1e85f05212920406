import { isAscii, isUtf8 } from 'node:buffer'

import { RelayError } from '../base/errors.js'

/** Deeper than any payload, shallow enough for programs that read JSON recursively. */
const MAX_NESTING = 1000
/** Four times those of a megabyte of commits, and so few that to parse them takes 5 ms and 3 MB, however they nest. */
const MANY_BRACKETS = 50_000

/**
 * Reads bytes as JSON, strictly: well-formed UTF-8 without a byte order mark, one value of any type and nothing
 * after it but white space (RFC 8259), arrays and objects at most {@link MAX_NESTING} deep.
 * @throws RelayError `invalid_event` otherwise. The message and cause quote nothing of the text.
 */
export function parseJson(bytes: Uint8Array): unknown {
  if (!isUtf8(bytes)) throw malformed('not UTF-8')
  // The same text where all is ASCII, and made in an eighth of the time.
  const text = asBuffer(bytes).toString(isAscii(bytes) ? 'latin1' : 'utf8')
  const openings = countOpenings(text, MANY_BRACKETS)
  // Before parsing: a megabyte of brackets takes JSON.parse 40 MB and a quarter of a second.
  if (openings > MANY_BRACKETS) requireShallow(text)
  const value = parse(text)
  // To look through the value takes half as long as to look through the text, and nearly always settles it.
  if (openings <= MANY_BRACKETS && mostNesting(value, openings) > MAX_NESTING) requireShallow(text)
  return value
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw malformed('not JSON')
  }
}

/** Whether {@link parseJson} reads the text. */
export function isJson(text: string): boolean {
  try {
    parseJson(Buffer.from(text))
    return true
  } catch {
    return false
  }
}

function asBuffer({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength)
}

function malformed(why: string): RelayError {
  return new RelayError('invalid_event', 'Invalid event', { cause: new Error(`the body is ${why}`) })
}

/** How many brackets open, also in strings; past `limit` they are not counted. `indexOf` finds them fastest. */
function countOpenings(text: string, limit: number): number {
  let count = 0
  for (const bracket of '[{') {
    for (let at = text.indexOf(bracket); at !== -1; at = text.indexOf(bracket, at + 1)) {
      if (++count > limit) return count
    }
  }
  return count
}

/**
 * How deep the text nests at most that has so many openings and made this value: as deep as the value, and one deeper for each
 * bracket that is not in it. Those are in strings, or in a member that was given again.
 */
function mostNesting(value: unknown, openings: number): number {
  // Most payloads have no more brackets than that altogether.
  if (openings <= MAX_NESTING) return openings
  let found = 0
  let deepest = 0
  const enter = (container: object, depth: number): void => {
    found++
    if (depth > deepest) deepest = depth
    if (depth > MAX_NESTING) return
    for (const child of Array.isArray(container) ? container : Object.values(container))
      if (typeof child === 'object' && child !== null) enter(child, depth + 1)
  }
  if (typeof value === 'object' && value !== null) enter(value, 1)
  return deepest + openings - found
}

/** @throws RelayError `invalid_event` */
function requireShallow(text: string): void {
  if (nestsDeeperThan(text, MAX_NESTING)) throw malformed('nested too deep')
}

/** Right for JSON; for what is not JSON the answer does not matter, as it is refused either way. */
function nestsDeeperThan(text: string, limit: number): boolean {
  let depth = 0
  for (let at = 0; at < text.length; at++) {
    const char = text.charCodeAt(at)
    if (char === 0x22) at = endOfString(text, at)
    else if (char === 0x5b || char === 0x7b) {
      if (++depth > limit) return true
    } else if (char === 0x5d || char === 0x7d) depth--
  }
  return false
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
