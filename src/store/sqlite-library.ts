import { createRequire } from 'node:module'
import { RelayError } from '../base/errors.js'

type Library = Pick<typeof import('@photostructure/sqlite'), 'DatabaseSync'>

/**
 * Node 22's module stores the bytes of an empty ArrayBuffer as NULL (seen with 22.23.3), and warns at each start that
 * it may change.
 */
const FIRST_NODE = 24
/**
 * Before 3.51.3, SQLite can damage a database when two connections copy its log at the same time, as relay and its
 * commands do (sqlite.org/wal.html#walresetbug).
 */
const FIRST_SQLITE = [3, 51, 3]

let library: Library | undefined

/**
 * Loads SQLite: Node's own if it has no known fault, else the package, which has the same interface.
 * @throws RelayError `storage` if both are missing
 */
export function loadSqlite(): Library {
  library ??= ofNode() ?? ofPackage()
  return library
}

function ofNode(): Library | undefined {
  const { node, sqlite } = process.versions
  if (isBefore(node, [FIRST_NODE]) || isBefore(sqlite, FIRST_SQLITE)) return undefined
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- Node 20's types do not know it; the package is made after it
  return process.getBuiltinModule('node:sqlite' as 'node:module') as unknown as Library | undefined
}

function isBefore(version = '0', first: readonly number[]): boolean {
  const numbers = version.split('.').map(Number)
  const differing = first.findIndex((number, i) => number !== numbers[i])
  return differing !== -1 && (numbers[differing] ?? 0) < (first[differing] ?? 0)
}

function ofPackage(): Library {
  try {
    const loaded: Library = createRequire(import.meta.url)('@photostructure/sqlite')
    return loaded
  } catch (cause) {
    const text = `relay needs SQLite, and the package @photostructure/sqlite, which brings it, cannot be loaded with Node ${process.versions.node}. Install relay again, or use the newest Node ${FIRST_NODE} or later, which has its own`
    throw new RelayError('storage', text, { cause })
  }
}
