import { RelayError } from '../base/errors.js'
import type { Delivery } from './delivery.js'

/** Which deliveries are meant, as written: `push`, `pull_request.opened`, `pull_request.*`, `*.closed`, `*`. */
export interface Match {
  readonly text: string
}

/** A word of letters, digits, `_ . : -` and inner spaces: what events may be called, less a dot at either end. */
const NAME = '[\\w:-](?:[\\w.: -]*[\\w:-])?'
const WHOLE = new RegExp(`^(?:\\*|${NAME})(?:\\.(?:\\*|${NAME}))?$`)
/** Events are at most 100 characters, so are the actions people choose for `repository_dispatch`. */
const MAX_LENGTH = 201

/**
 * Reads `event` or `event.action`. `*` may stand for all of either part, never for a piece of one.
 * @throws RelayError `usage`
 */
export function parseMatch(text: string): Match {
  if (text.length <= MAX_LENGTH && WHOLE.test(text)) return { text }
  const named = text.length <= MAX_LENGTH ? ` '${text}'` : ''
  throw new RelayError(
    'usage',
    `Invalid match${named}: write event or event.action, with * for all of a part`,
  )
}

/** An event alone, and `event.*`, mean it with any action and with none; `*.action` means any event with that action. */
export function matches({ text }: Match, { event, action }: Pick<Delivery, 'event' | 'action'>): boolean {
  return (
    text === '*' ||
    text === '*.*' ||
    text === event ||
    text === `${event}.*` ||
    (action !== null && (text === `${event}.${action}` || text === `*.${action}`))
  )
}
