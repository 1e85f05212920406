/** What a column holds. Whole numbers are safe integers. Text is Unicode: a NUL or half a surrogate pair becomes U+FFFD. */
export type SqlValue = string | number | null | Uint8Array

export type SqlRow = Readonly<Record<string, SqlValue>>

/** One SQL statement with a value for each `?`, in their order. */
export interface Statement {
  readonly sql: string
  readonly values?: readonly SqlValue[]
}

/** A statement of a transaction. */
export interface Step extends Statement {
  /** The statement must return a row: otherwise nothing of the transaction is done. */
  readonly required?: true
}
