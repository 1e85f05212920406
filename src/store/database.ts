import type { Expectation, Store } from './contract.js'
import type { Sql, Step } from './sql.js'

/** Where a profile's data lies: the key-value store, and the relational database that it is part of. */
export interface Database extends AsyncDisposable {
  readonly store: Store
  readonly sql: Sql
  /** Makes the step, for transactions of `sql`, that is required to find this in `store` at `now`; see {@link Step.required}. */
  readonly expectStep: (expectation: Expectation) => (now: number) => Step
}
