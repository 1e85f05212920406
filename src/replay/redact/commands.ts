import { isNameOfSecret, isSecretName } from './names.js'
import type { Span } from './span.js'

/** A word of a command line, or a quoted text. */
const WORD = String.raw`(?:\\?"[^"\r\n]{1,256}"|'[^'\r\n]{1,256}'|[^\s"'|;&]{1,256})`
const USER = new RegExp(String.raw`(?<![\w-])(?:-u|-U|--(?:proxy-)?user)[ =]{0,2}(${WORD})`, 'g')
/** curl's option for cookies, as opposed to a cookie file. */
const COOKIES = new RegExp(String.raw`(?<![\w-])-b[ =]{0,2}(${WORD})`, 'g')
const OPTION = new RegExp(String.raw`(?<![\w-])--?([\w-]{2,64})[ \t]{1,8}(?!-)(${WORD})`, 'g')
/** Programs that take the password after `-p` without a space. */
const PASSWORD_OF = /\b(?:mysql|mariadb|sshpass|7z|unzip)/
const SHORT = /(?<=\s)-p([^\s"'|;&]{1,256})/g
/** Format of a .netrc file: `machine x login y password z`. */
const NETRC = /\blogin\s{1,8}\S{1,256}\s{1,8}password\s{1,8}(\S{1,256})/g
/** Keywords of SQL and sshpass before a password. */
const NAMELESS = new RegExp(String.raw`\b(?:identified\s{1,8}by|sshpass\s{1,8}-p)\s{0,8}(${WORD})`, 'gi')
/**
 * Sentences such as `password is x` or `password for the admin was "x"`. An unquoted value counts only if it is not an
 * ordinary word.
 */
const SENTENCE =
  /(?<![\p{L}\p{N}_.-])([\p{L}\p{N}_.-]{2,64}(?: [\p{L}\p{N}_.-]{1,32}){0,6}?) (?:is|was|are|equals|to|->|→) (?:now )?(\\?"[^"\r\n]{1,256}"|'[^'\r\n]{1,256}'|`[^`\r\n]{1,256}`|[^\s"'`<>]{1,256})/gu

/** Finds secrets in command lines and sentences. */
export function* secretsInCommands(text: string): Generator<Span> {
  if (!/\s/.test(text)) return
  for (const { all, end, value } of words(text, USER))
    if (all.includes(':')) yield { start: end - value.length, end }
  if (text.includes('curl'))
    for (const { end, value } of words(text, COOKIES))
      if (value.includes('=')) yield { start: end - value.length, end }
  for (const { end, value, name } of words(text, OPTION, 2))
    if (isSecretName(name)) yield { start: end - value.length, end }
  for (const pattern of [NETRC, NAMELESS])
    for (const { end, value } of words(text, pattern)) yield { start: end - value.length, end }
  if (PASSWORD_OF.test(text))
    for (const { end, value } of words(text, SHORT))
      yield { start: end - value.length, end, isOrdinary: true }
  if (text.includes('\t')) yield* inColumns(text)
  for (const { end, value, name } of words(text, SENTENCE, 2)) {
    const isWord = /^\p{L}+[.,;:!?]?$/u.test(value)
    if ([name, ...name.split(' ')].some(isSecretName))
      yield { start: end - value.length, end, isOrdinary: isWord }
  }
}

/** Finds a value after its name in lines with tab-separated columns. */
function* inColumns(text: string): Generator<Span> {
  let [name, end] = ['', 0]
  for (const { 0: value, index: start } of text.matchAll(/[^\t\r\n]+/g)) {
    const isNext = !/[\r\n]/.test(text.slice(end, start))
    end = start + value.length
    if (isNext && isNameOfSecret(name.trim())) yield { start, end, isOrdinary: /^\p{L}+$/u.test(value) }
    name = value
  }
}

function* words(text: string, pattern: RegExp, group = 1) {
  for (const match of text.matchAll(pattern)) {
    const { 0: all, 1: name = '', index } = match
    yield { all, name, value: match[group] ?? '', end: index + all.length }
  }
}
