/** A range in a text. */
export interface TextRange {
  readonly start: number
  /** Index after its last character. */
  readonly end: number
}

/** A range in a text that is replaced. */
export interface Span extends TextRange {
  /** The e-mail address in its plain form, if the range is one. */
  readonly email?: string
  /** True for a word that may be an ordinary one. It is replaced only here. */
  readonly isOrdinary?: boolean
}

/** Shrinks a range by the white space at its ends. Undefined if nothing is left. */
export function trimRange(text: string, { start, end }: TextRange): TextRange | undefined {
  const all = text.slice(start, end)
  const from = start + all.length - all.trimStart().length
  return from === end ? undefined : { start: from, end: start + all.trimEnd().length }
}
