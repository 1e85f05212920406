import { CREDENTIAL_HEADERS } from '../http/headers.js'
import { handshakesOf } from './handshakes.js'
import { headerOf, type WebhookScheme } from './scheme.js'
import { BUSINESS } from './table/business.js'
import { DEVELOPMENT } from './table/development.js'
import { MESSAGING } from './table/messaging.js'
import { PAYMENTS } from './table/payments.js'
import { rowToScheme, type SenderRow } from './table/row.js'

/**
 * Senders that relay knows by name, in groups. A new one is a row of its group, with the page that documents it, and a
 * row in the test of all senders; a section in docs/senders.md only if users must know something about it.
 */
export const ROWS: ReadonlyMap<string, SenderRow> = new Map(
  [DEVELOPMENT, PAYMENTS, MESSAGING, BUSINESS].flatMap((group) => Object.entries(group)),
)

/** Headers in which senders of the table send the secret itself, whichever address they send it to. */
const SECRET_HEADERS: ReadonlySet<string> = new Set(
  [...ROWS.values()].flatMap(({ proofs }) =>
    proofs.flatMap(({ place, algorithm }) => (algorithm === 'token' ? (headerOf(place) ?? []) : [])),
  ),
)

/** True for a header that may hold a secret of any sender, or another credential. It is never stored. */
export function isSecretHeader(name: string): boolean {
  return CREDENTIAL_HEADERS.test(name) || SECRET_HEADERS.has(name.toLowerCase())
}

/** The scheme of a named sender. */
export function rowScheme(name: string): WebhookScheme | undefined {
  const found = ROWS.get(name)
  if (!found) return undefined
  const {
    title: _title,
    page: _page,
    secretLike: _like,
    secret,
    secretHint = `it is ${secret}`,
    ...row
  } = found
  return rowToScheme({ handshakes: handshakesOf(name), ...row, secretHint })
}
