import { hostScheme, OTHER_HOST } from './hosts.js'
import type { WebhookScheme } from './scheme.js'
import { PayPalSender } from './paypal.js'
import { SchemeSender } from './scheme-sender.js'
import { SnsSender } from './sns.js'
import type { Sender } from './sender.js'
import { CUSTOM_SCHEMES, parseCustom, withChoices } from './custom.js'
import { ROWS, rowScheme } from './table.js'
import type { SenderRow } from './table/row.js'

export { isSecretHeader } from './table.js'

/** Names of the schemes that are not a code host's. */
export const SCHEME_NAMES: readonly string[] = [...ROWS.keys(), ...CUSTOM_SCHEMES]

/** Name and needs of a sender of the table. */
export interface KnownSender extends Pick<SenderRow, 'title' | 'page' | 'secret' | 'secretLike'> {
  /** Name of its scheme. */
  readonly name: string
}

/** Senders of the table, by name. */
export const KNOWN_SENDERS: readonly KnownSender[] = [...ROWS]
  .map(([name, row]) => ({ name, ...row }))
  .toSorted((one, other) => (one.name < other.name ? -1 : 1))

/** The sender of the table whose scheme this text names. Undefined for a scheme of the user's own, or a code host's. */
export function knownSender(scheme: string): KnownSender | undefined {
  const [name] = scheme.split(' ')
  return KNOWN_SENDERS.find((each) => each.name === name)
}

/** Senders of the table with these words in their name or title, in any case, with spaces or without. */
export function searchSenders(text: string): readonly KnownSender[] {
  const words = text.toLowerCase().split(/\s+/)
  return KNOWN_SENDERS.filter(({ name, title }) => {
    const own = `${name} ${title.toLowerCase()}`
    const joined = own.replaceAll(' ', '')
    return words.every((word) => own.includes(word) || joined.includes(word))
  })
}

/** Senders by the text of their scheme: those that the settings and the journal name. */
const known = new Map<string, Sender>()

/**
 * The sender with this scheme: a name of the table, or `hmac`, `token` or `none` with parts. A recording may name any
 * sender; one that relay does not know is like GitHub.
 * @throws RelayError `settings` for a scheme with a missing, unknown or malformed part
 */
export function senderOf(scheme: string): Sender {
  const found = known.get(scheme) ?? makeSender(scheme)
  if (known.size >= MAX_KNOWN) known.clear()
  known.set(scheme, found)
  return found
}

/** Senders that need code of their own, by the names of their rows. */
const CLASSES: ReadonlyMap<string, typeof SnsSender | typeof PayPalSender> = new Map<
  string,
  typeof SnsSender | typeof PayPalSender
>([
  ['sns', SnsSender],
  ['paypal', PayPalSender],
])

function makeSender(scheme: string): Sender {
  const Class = CLASSES.get(scheme.split(' ', 1).join('')) ?? SchemeSender
  return new Class(scheme, schemeOf(scheme))
}

/** Most senders that are kept: more than a relay has, and a bound, since each fixture may name another scheme. */
const MAX_KNOWN = 100

/** Scheme of a text, as data for this folder. @throws RelayError `settings` as {@link senderOf} */
export function schemeOf(scheme: string): WebhookScheme {
  const [name = '', ...words] = scheme.trim().split(/\s+/)
  const found = hostScheme(name) ?? rowScheme(name)
  if (found) return words.length > 0 ? withChoices(found, name, words) : found
  return parseCustom(name, words) ?? OTHER_HOST
}

/** True if a text is a scheme that relay knows. */
export function isScheme(scheme: string): boolean {
  try {
    return schemeOf(scheme) !== OTHER_HOST
  } catch {
    return false
  }
}
