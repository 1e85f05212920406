import type { Store } from './contract.js'
import type { Sql } from './sql.js'

/** Where a profile's data lies: the key-value store, and the relational database that it is part of. */
export interface Database extends AsyncDisposable {
  readonly store: Store
  readonly sql: Sql
}
