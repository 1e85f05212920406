import { ByteWriter } from './byte-writer.js'

const QUOTE = 0x22
const SLASH = 0x2f
const BACKSLASH = 0x5c
const LETTER_U = 0x75
/** `b`, `t`, `n`, `f` and `r`, by the control character that they escape. */
const SHORT_ESCAPES = new Map([8, 9, 10, 12, 13].map((code, i) => [code, 'btnfr'.charCodeAt(i)]))

/**
 * Removes the white space between the tokens of well-formed JSON. Numbers, names and their order stay as they are, and
 * strings too, unless they are to be written as JSON.stringify writes them: then one text stands for all ways to escape it.
 * Malformed JSON becomes some other malformed JSON. Takes time linear in the length, and memory of twice the length.
 */
export function minify(text: string, { normalize }: { readonly normalize: boolean }): Buffer {
  const json = Buffer.from(text)
  const out = new ByteWriter(json.length)
  let inString = false
  let copied = 0
  for (let at = 0; at < json.length;) {
    const byte = json[at] ?? 0
    if (SPECIAL[byte] === 0) at++
    else if (byte === QUOTE) {
      inString = !inString
      at++
    } else if (byte === BACKSLASH) {
      if (normalize && (json[at + 1] === LETTER_U || json[at + 1] === SLASH)) {
        out.pushRange(json, copied, at)
        copied = writeNormalized(json, at, out)
        at = copied
      } else at += 2
    } else if (inString) at++
    else {
      out.pushRange(json, copied, at)
      copied = ++at
    }
  }
  if (copied < json.length) out.pushRange(json, copied, json.length)
  return out.bytes ?? json
}

/** 1 for quotes, backslashes and white space; 0 for other bytes. */
const SPECIAL = new Uint8Array(256)
for (const byte of Buffer.from('"\\ \t\n\r')) SPECIAL[byte] = 1

/** Writes the escape `\u` or `\/` at `at` as JSON.stringify does. Returns the index after it. */
function writeNormalized(json: Buffer, at: number, out: ByteWriter): number {
  if (json[at + 1] === SLASH) {
    out.push(SLASH)
    return at + 2
  }
  const code = codeUnit(json, at)
  if (code === undefined) {
    out.pushRange(json, at, at + 2)
    return at + 2
  }
  const low = isHighSurrogate(code) ? codeUnit(json, at + 6) : undefined
  if (low !== undefined && low >= 0xdc00 && low <= 0xdfff) {
    out.pushCharacter(0x1_0000 + ((code - 0xd800) << 10) + (low - 0xdc00))
    return at + 12
  }
  const short = code === QUOTE || code === BACKSLASH ? code : SHORT_ESCAPES.get(code)
  if (short !== undefined) {
    out.push(BACKSLASH)
    out.push(short)
  } else if (code < 0x20 || (code >= 0xd800 && code <= 0xdfff)) out.pushEscape(code)
  else out.pushCharacter(code)
  return at + 6
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff
}

/** The code unit of a `\u` escape at `at`; undefined for anything else. */
function codeUnit(json: Buffer, at: number): number | undefined {
  if (json[at] !== BACKSLASH || json[at + 1] !== LETTER_U) return undefined
  const digits = json.toString('latin1', at + 2, at + 6)
  return /^[0-9a-f]{4}$/i.test(digits) ? Number.parseInt(digits, 16) : undefined
}
