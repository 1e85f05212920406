import { type ErrorKind, RelayError } from './errors.js'
import { didYouMean, suggest } from './text.js'

/** Names of a type's members, so that none is forgotten. */
export type NamesOf<Options> = Readonly<Record<keyof Options, true>>

export interface NameCheck {
  /** What the object is, as in `startRelay has no option secert`. */
  readonly of: string
  readonly kind: ErrorKind
  /** True: only a name that is nearly a known one is refused, since the object may have members of its own. */
  readonly ownAllowed?: boolean
}

/**
 * Refuses a member whose name is not known: without types, a misspelt option would do nothing.
 * @throws RelayError of the kind, with the nearest name
 */
export function checkNames(
  given: object,
  known: Readonly<Record<string, true>>,
  { of, kind, ownAllowed = false }: NameCheck,
): void {
  const names = Object.keys(known)
  for (const [name, value] of Object.entries(given)) {
    if (Object.hasOwn(known, name) || value === undefined) continue
    if (ownAllowed && suggest(name, names) === undefined) continue
    throw new RelayError(kind, `${of} ${name}${didYouMean(name, names)}`)
  }
}
