import type { Leases } from './leases.js'
import type { SqlRow, SqlValue, Step } from './statement.js'

export type { SqlRow, SqlValue, Step }

/** How long storage may take, in milliseconds: code hosts wait 10 s for an answer, and this leaves most of it. */
export const LIMIT_MS = 4000

export interface TransactionOptions {
  /** The transaction stores something new of any size: it is refused while the disk has little room left. */
  readonly grows?: boolean
  /**
   * It changes the journal: announces that to other relays, in the same transaction, with these words about older entries. Does
   * nothing where no other relay can be.
   */
  readonly announce?: readonly string[]
  /** Called with the rows when the transaction becomes durable after its promise was rejected. Must not throw. */
  readonly onLate?: ((rows: readonly (readonly SqlRow[])[]) => void) | undefined
}

/**
 * A relational database. Statements use what SQLite and PostgreSQL have in common.
 *
 * Every method rejects with RelayError `storage` when the database fails or does not answer within its limit (4 s). Messages
 * hold no value of a row.
 */
export interface Sql extends AsyncDisposable {
  /** The rows of a statement that only reads. */
  query<Row extends object = SqlRow>(sql: string, values?: readonly SqlValue[]): Promise<readonly Row[]>
  /**
   * Does all steps or none; resolved means durable. Transactions that arrive while another is being flushed share the next
   * flush. Resolves to the rows of each step, or to undefined, and nothing is done, when a required step returned no row.
   */
  transaction(
    steps: readonly Step[],
    options?: TransactionOptions,
  ): Promise<readonly (readonly SqlRow[])[] | undefined>
  /** Where several relays may have the database at once: which of them does what. Absent where one relay has it for itself. */
  readonly leases?: Leases
  /** What the stored data takes, in bytes; free space within the file is not counted. */
  usedBytes(): Promise<number>
  /** Gives some of the free space within the file back to the file system. True when there is more to give back. */
  shrink(): Promise<boolean>
}
