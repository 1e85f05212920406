import { endOfString } from './json.js'

/** One way in which programs write JSON. */
export interface Encoding {
  /** For a sentence: `compact JSON`. */
  readonly name: string
  /** Writes a valid JSON text so. Numbers, order and repeated keys stay as they are; so do strings, but for escapes. */
  write(json: string): string
}

interface Style {
  readonly indent: string
  readonly comma: string
  readonly colon: string
  readonly string: (content: string) => string
}

const COMPACT = { indent: '', comma: ',', colon: ':' }
const INDENTED = { indent: '  ', comma: ',', colon: ': ' }
const SPACED = { indent: '', comma: ', ', colon: ': ' }

/** As code hosts, and what stands between them and us, write JSON; the likeliest first. */
export const ENCODINGS: readonly Encoding[] = [
  encoding('compact JSON', { ...COMPACT, string: javascript }),
  encoding('compact JSON with upper-case escapes, as GitHub writes it', { ...COMPACT, string: github }),
  encoding("two-space indented JSON with Go's escapes, as Gitea writes it", { ...INDENTED, string: go }),
  encoding("compact JSON with Go's escapes", { ...COMPACT, string: go }),
  encoding('two-space indented JSON', { ...INDENTED, string: javascript }),
  encoding('JSON with spaces and in ASCII, as Python writes it', { ...SPACED, string: python }),
]

/** How the field `payload` of a form is written; the likeliest first. */
export const FORMS: readonly ((json: string) => string)[] = [
  (json) => new URLSearchParams({ payload: json }).toString(),
  (json) => `payload=${encodeURIComponent(json)}`,
]

function encoding(name: string, style: Style): Encoding {
  return { name, write: (json) => rewrite(json, style) }
}

/** Token by token, since a value once parsed has lost large numbers, repeated keys and the order of numeric ones. */
function rewrite(json: string, { indent, comma, colon, string }: Style): string {
  let out = ''
  let depth = 0
  /** Whether an array or object has just begun, and may yet be empty. */
  let opened = false
  const newLine = (): string => (indent === '' ? '' : `\n${indent.repeat(depth)}`)
  for (let at = 0; at < json.length; at++) {
    const char = json[at] ?? ''
    if (/[ \n\r\t]/.test(char)) continue
    const closes = char === '}' || char === ']'
    if (closes) depth--
    if (opened !== closes) out += newLine()
    opened = char === '{' || char === '['
    if (opened) depth++
    if (char === '"') {
      const end = endOfString(json, at)
      const content: string = JSON.parse(json.slice(at, end + 1))
      out += string(content)
      at = end
    } else if (char === ',') out += comma + newLine()
    else out += char === ':' ? colon : char
  }
  return out
}

function javascript(content: string): string {
  return JSON.stringify(content)
}

function github(content: string): string {
  return javascript(content).replaceAll(
    /\\u00[01][0-9a-f]/g,
    (escape) => `\\u${escape.slice(2).toUpperCase()}`,
  )
}

/** As `encoding/json`, which has HTML in mind. */
function go(content: string): string {
  return javascript(content).replaceAll(/[<>&\u2028\u2029]/g, escaped)
}

function python(content: string): string {
  return javascript(content).replaceAll(/[\u007f-\uffff]/g, escaped)
}

function escaped(char: string): string {
  return `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`
}
