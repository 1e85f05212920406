import { RelayError } from '../base/errors.js'
import { type Match, parseMatch } from '../journal/match.js'
import type { Target } from './target.js'

/** Which deliveries go where. */
export interface Route {
  readonly match: Match
  readonly target: Target
  /** What the journal knows the target by: `<match>=<address>` or `<match>=exec:<command>`, as it was written. */
  readonly id: string
  /** The id on one line, without a match that is `*`, and without the password and query of an address. */
  readonly label: string
}

export function createRoute(match: Match, target: Target): Route {
  const written = target.kind === 'http' ? target.url : EXEC + target.command
  const id = `${match.text}=${written}`
  return { match, target, id, label: labelOf(id) }
}

const EXEC = 'exec:'
const ALL = '*'

/**
 * Reads `[match=]url`; without a match it is for every delivery.
 * @throws RelayError `settings`, naming what is wrong.
 */
export function parseForward(text: string): Route {
  const whole = text.trim()
  const at = isHttp(whole) ? -1 : whole.indexOf('=')
  const url = whole.slice(at + 1).trim()
  if (!isHttp(url)) throw invalid(`'${withoutSecrets(whole)}' names no http:// or https:// address`)
  return createRoute(readMatch(at === -1 ? ALL : whole.slice(0, at).trim()), { kind: 'http', url })
}

/**
 * Reads `[match=]command`; without a match it is for every delivery. A word before the first `=` is the match, so a command
 * that begins with an assignment needs one of its own: `*=NAME=value command`.
 * @throws RelayError `settings`, naming what is wrong.
 */
export function parseExec(text: string): Route {
  const [, match, rest] = /^\s*([^\s=]*)=(.*)$/s.exec(text) ?? []
  const isMatch = match !== undefined && /^[\w.:*-]*$/.test(match)
  if (isMatch && /^[A-Z_][A-Z\d_]*$/.test(match)) {
    throw invalid(`'${match}=' sets a variable; for a command that begins so, write '*=${match}=…'`)
  }
  const command = (isMatch ? (rest ?? '') : text).trim()
  if (command === '') throw invalid('there is no command')
  if (command.includes('\0')) throw invalid('a command cannot hold a NUL character')
  return createRoute(readMatch(isMatch ? match : ALL), { kind: 'command', command })
}

/** How a target is shown of which only the id is known. */
export function labelOf(id: string): string {
  const [, match = '', target = ''] = /^([^=]*)=(.*)$/s.exec(id) ?? ['', '', id]
  const shown = target.startsWith(EXEC) ? target : withoutSecrets(target)
  return (match === '' || match === ALL ? shown : `${match}=${shown}`).replaceAll(/\s+/g, ' ')
}

/** Works on what is no address too: it is what a message about that quotes. */
export function withoutSecrets(url: string): string {
  return url.replace(/\/\/[^/?#]*@/, '//***@').replace(/\?.*$/s, '?…')
}

function isHttp(text: string): boolean {
  // Other spellings of an address would not be known as one where its password is left out.
  return /^https?:\/\//i.test(text) && URL.canParse(text)
}

function readMatch(text: string): Match {
  try {
    return parseMatch(text)
  } catch (cause) {
    if (cause instanceof RelayError) throw new RelayError('settings', cause.message, { cause })
    throw cause
  }
}

function invalid(why: string): RelayError {
  return new RelayError('settings', `Invalid route: ${why}`)
}
