import { MIGRATIONS, type Migration } from '../../src/store/schema.js'
import { fetchRows, execute, type Tx } from '../../src/store/sql.js'

/** How many rows a migration reads at once. */
const PAGE = 1000

/** Two migrations that this version of relay does not have, of all that one can do: columns, rows one by one, indexes, tables. */
const NEXT: readonly Migration[] = [
  function* () {
    yield* execute({ sql: `ALTER TABLE delivery ADD COLUMN label TEXT NOT NULL DEFAULT ''`, values: [] })
    yield* labelled(0)
    yield* execute({ sql: 'CREATE INDEX delivery_label ON delivery (label, n)', values: [] })
  },
  function* () {
    yield* execute({
      sql: 'CREATE TABLE note (n INTEGER PRIMARY KEY, text TEXT NOT NULL, raw BLOB)',
      values: [],
    })
    yield* execute({ sql: 'INSERT INTO note (n, text) SELECT n, label FROM delivery', values: [] })
  },
]

function* labelled(after: number): Tx<void> {
  const page = 'SELECT n, delivery_id FROM delivery WHERE n > ? ORDER BY n LIMIT ?'
  const rows = yield* fetchRows<{ n: number; delivery_id: string }>(page, after, PAGE)
  for (const { n, delivery_id: id } of rows)
    yield* fetchRows('UPDATE delivery SET label = ? WHERE n = ?', `${id}?`, n)
  const last = rows.at(-1)
  if (last) yield* labelled(last.n)
}

/** Makes this process a later version of relay, with these migrations, until it is disposed of. */
export function laterVersion(migrations: readonly Migration[] = NEXT): Disposable {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a list of this program's own, which a later version has longer
  const list = MIGRATIONS as Migration[]
  const { length } = list
  list.push(...migrations)
  return { [Symbol.dispose]: () => void list.splice(length) }
}

/** The same, killed by SIGKILL when the statement of this number is about to be run. */
export function killedAt(count: number): Disposable {
  let statements = 0
  const killed = (migration: Migration): Migration =>
    function* () {
      const work = migration()
      for (let step = work.next([]); step.done !== true;) {
        if (++statements === count) process.kill(process.pid, 'SIGKILL')
        step = work.next(yield step.value)
      }
    }
  return laterVersion(NEXT.map(killed))
}
