import type { Sql, SqlRow, Step, TransactionOptions } from '../store/sql.js'

/** Lets the journal be written only while a condition holds, such as that the profile is this process's own. */
export interface Guard {
  /** A required step that is put first into every transaction; undefined for none. */
  readonly statement: () => Step | undefined
  /** Called when that step returned no row. Rejects with the reason. */
  readonly refuse: () => Promise<never>
}

export interface WriteOptions extends TransactionOptions {
  /** What must hold for this write, in place of the journal's guard. */
  readonly fence?: Guard | undefined
}

/** Does all steps in one transaction and resolves to their rows. Rejects with the guard's reason. */
export type Write = (
  steps: readonly Step[],
  options?: WriteOptions,
) => Promise<readonly (readonly SqlRow[])[]>

export function createWrite(sql: Pick<Sql, 'transaction'>, guard: Guard | undefined): Write {
  return async (steps, { fence = guard, ...options } = {}) => {
    const check = fence?.statement()
    const rows = await sql.transaction(check ? [check, ...steps] : steps, options)
    if (rows) return check ? rows.slice(1) : rows
    await fence?.refuse()
    throw new Error('unreachable: only the guard requires a row')
  }
}
