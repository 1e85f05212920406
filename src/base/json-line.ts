/** The line, counted from 1, of the first thing that is not JSON; of the end, when something is missing there. */
export function lineOfError(text: string): number {
  return lineAt(text, endOfJson(text))
}

/**
 * The line, counted from 1, where the value at `path` begins in a JSON text; where there is none, that of the
 * innermost value on the way to it. Of a member given twice the last counts, as it does when the text is parsed.
 */
export function lineOfField(text: string, path: readonly PropertyKey[]): number {
  const place: (string | number)[] = []
  let found = { depth: 0, at: /\S/.exec(text)?.index ?? 0 }
  let isName = false
  const look = (at: number): void => {
    if (
      place.length >= found.depth &&
      place.length <= path.length &&
      place.every((key, i) => key === path[i])
    )
      found = { depth: place.length, at }
  }
  for (let at = found.at; at < text.length; at++) {
    const char = text[at]
    if (char === '"') {
      const end = endOfString(text, at) ?? text.length
      if (isName) place.splice(-1, 1, String(JSON.parse(text.slice(at, end))))
      if (isName) look(at)
      isName = false
      at = end - 1
    } else if (char === '{' || char === '[') {
      isName = char === '{'
      place.push(isName ? '' : 0)
      if (!isName) look(at + 1)
    } else if (char === '}' || char === ']') {
      isName = false
      place.pop()
    } else if (char === ',') {
      const last = place.at(-1)
      isName = typeof last === 'string'
      if (typeof last === 'number') place.splice(-1, 1, last + 1)
      if (typeof last === 'number') look(at + 1)
    }
  }
  return lineAt(text, skipSpace(text, found.at))
}

function lineAt(text: string, end: number): number {
  let line = 1
  for (let at = text.indexOf('\n'); at !== -1 && at < end; at = text.indexOf('\n', at + 1)) line++
  return line
}

/** A sign, the beginning of a string, or another value, after white space. */
const TOKEN =
  /[ \t\r\n]*(?:([{}[\],:])|(")|(?:-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)(?![\w.+-]))/y
/** Where a string's plain characters end. */
const NOT_PLAIN = /["\\\p{Cc}]/gu
const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y

/** What may come next, in the form of the tokens: `v` a value, `s` a string. */
type Wanted = 'v' | 'v]' | 's' | 's}' | ':' | ',]' | ',}' | ''

/** How far the text is JSON. */
function endOfJson(text: string): number {
  const open: string[] = []
  let wanted: Wanted = 'v'
  let end = 0
  for (;;) {
    TOKEN.lastIndex = end
    const found = TOKEN.exec(text)
    const token = found?.[1] ?? (found?.[2] === undefined ? 'v' : 's')
    const next: Wanted | undefined = found ? after(token, wanted, open) : undefined
    const past = token === 's' ? endOfString(text, TOKEN.lastIndex - 1) : TOKEN.lastIndex
    if (next === undefined || past === undefined) break
    wanted = next
    end = past
  }
  return skipSpace(text, end)
}

/**
 * Past the string that begins at `start`, perhaps without its end at the end of the text; undefined when it holds
 * what no string may. Not one regular expression: on a megabyte of text that runs out of stack.
 */
function endOfString(text: string, start: number): number | undefined {
  NOT_PLAIN.lastIndex = start + 1
  for (;;) {
    const found = NOT_PLAIN.exec(text)
    if (!found) return text.length
    if (found[0] === '"') return NOT_PLAIN.lastIndex
    if (found[0] >= '\u007f') continue
    ESCAPE.lastIndex = found.index
    if (!ESCAPE.test(text)) return undefined
    NOT_PLAIN.lastIndex = ESCAPE.lastIndex
  }
}

function skipSpace(text: string, from: number): number {
  const next = /\S/g
  next.lastIndex = from
  return next.exec(text)?.index ?? text.length
}

/** Undefined when the token may not stand there. */
function after(token: string, wanted: Wanted, open: string[]): Wanted | undefined {
  const innermost = (): Wanted => (open.length === 0 ? '' : open.at(-1) === '{' ? ',}' : ',]')
  if (token === '}' || token === ']') {
    if (!wanted.endsWith(token)) return undefined
    open.pop()
    return innermost()
  }
  if (token === ',' && wanted.startsWith(',')) return wanted === ',}' ? 's' : 'v'
  if (token === ':' && wanted === ':') return 'v'
  if (token === 's' && wanted.startsWith('s')) return ':'
  if (!wanted.startsWith('v')) return undefined
  if (token === '{' || token === '[') {
    open.push(token)
    return token === '{' ? 's}' : 'v]'
  }
  return token === 'v' || token === 's' ? innermost() : undefined
}
