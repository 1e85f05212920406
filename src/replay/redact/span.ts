/** A place in a text. */
export interface Place {
  readonly start: number
  /** Past its last character. */
  readonly end: number
}

/** A place in a text that is replaced. */
export interface Span extends Place {
  /** Set for an address of a person; the address in its plain form. */
  readonly email?: string
  /** True for a word that can be an ordinary one: it is replaced here alone. */
  readonly isOrdinary?: boolean
}

/** The place without the white space at its ends; undefined if nothing is left. */
export function trimmed(text: string, { start, end }: Place): Place | undefined {
  const all = text.slice(start, end)
  const from = start + all.length - all.trimStart().length
  return from === end ? undefined : { start: from, end: start + all.trimEnd().length }
}
