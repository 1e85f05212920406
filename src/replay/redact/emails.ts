import type { Span } from './span.js'

/** The `@` of an address, including its spellings in text, HTML, JSON and other addresses. */
const SIGN = String.raw`@|＠|%(?:25)?40|&#0{0,6}64;|&#x0{0,6}40;|&commat;|\\u0040|\\x40| ?[[({<] ?at ?[\])}>] ?`
const MAY_HAVE_SIGN = /[@＠%&\\]|[[({<] ?at/i
const LABEL = String.raw`[\p{L}\p{N}](?:[\p{L}\p{N}-]{0,61}[\p{L}\p{N}])?`
/** Domain or IP address (RFC 5321 section 4.1.2), or a name that needs no domain. */
const DOMAIN = String.raw`(?:${LABEL}\.){1,10}(?:xn--[\p{L}\p{N}-]{1,59}|\p{L}{2,24})|\[[\da-z:.]{2,64}\]|(?:\d{1,3}\.){3}\d{1,3}|localhost`
/** The part of an address from its `@`. The local part is searched backwards from there. */
const AT = new RegExp(`(${SIGN})(${DOMAIN})`, 'giu')
/** Characters of a local part (RFC 5322 section 3.2.3), except `=?&%`, which precede an address inside another one. */
const LOCAL = /[\p{L}\p{N}.!#$'*+^_`{|}~/-]/u
/** Longest local part (RFC 5321 section 4.5.3.1.1). */
const MAX_LOCAL = 64
/** Well-known user of SSH addresses. */
const SSH_USER = /^git$/

/** Finds e-mail addresses. */
export function* emailsIn(text: string): Generator<Span> {
  if (!MAY_HAVE_SIGN.test(text)) return
  let before = 0
  for (const { 0: all, 2: domain = '', index } of text.matchAll(AT)) {
    const start = localStart(text, before, index)
    before = index + all.length
    const local = text.slice(start, index)
    if (local !== '' && !SSH_USER.test(local))
      yield { start, end: before, email: `${local}@${domain}`.toLowerCase() }
  }
}

function localStart(text: string, from: number, end: number): number {
  const least = Math.max(from, end - MAX_LOCAL)
  const quoted = text.charAt(end - 1) === '"' ? /\\{0,3}"[^"\r\n]+"$/.exec(text.slice(least, end)) : null
  if (quoted) return least + quoted.index
  let start = end
  while (start > least && LOCAL.test(text.charAt(start - 1))) start--
  const local = text.slice(start, end)
  // The path of an address or a file does not belong to the person.
  return /^[./]|\/\//.test(local) ? end - (local.length - 1 - local.lastIndexOf('/')) : start
}
