/** A statement as PostgreSQL takes it. */
export interface Prepared {
  readonly text: string
  /** The name under which a connection keeps it prepared; empty for one that it does not keep. */
  readonly name: string
}

/** Statements that a connection keeps prepared: relay has some 50, and a few more for each kind of filter. */
const MAX_NAMED = 200

/** Translates the statements of the SQL contract, and gives the same one the same name each time. */
export class Statements {
  readonly #known = new Map<string, Prepared>()

  get(sql: string): Prepared {
    const known = this.#known.get(sql)
    if (known) return known
    if (this.#known.size >= MAX_NAMED) return { text: numbered(sql), name: '' }
    const prepared = { text: numbered(sql), name: `relay${this.#known.size}` }
    this.#known.set(sql, prepared)
    return prepared
  }

  /**
   * The same statement, but one that returns no row is an error, {@link NO_ROW}: the server then does nothing of the transaction,
   * without a round trip to decide it here.
   */
  required(sql: string): Prepared {
    return this.get(
      `WITH found AS (${sql}) SELECT found.* FROM found WHERE (SELECT 1 / count(*) FROM found) IS NOT NULL`,
    )
  }
}

/** `division_by_zero`: no statement of relay's divides, except to say that a required row is missing. */
export const NO_ROW = '22012'

/** `$1`, `$2`, … in place of each `?` that is not within quotes. */
function numbered(sql: string): string {
  let count = 0
  return sql.replaceAll(/'[^']*'|\?/g, (match) => (match === '?' ? `$${++count}` : match))
}
