import { chmodSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { type Database as Dbi, type RootDatabase, open } from 'lmdb'
import { RelayError } from '../base/errors.js'
import type { Log } from '../base/log.js'
import { MAX_KEY_BYTES } from './contract.js'
import type { Decision, Engine, Row, RowRange, RowWrite, Transaction } from './engine.js'
import { Group, type Version } from './group.js'
import { checkHeader } from './header.js'
import { withinLimit } from './limit.js'
import { Loan } from './loan.js'

/** The data lies in this file; the processes that have it open meet in `relay.mdb-lock` beside it. */
const FILE = 'relay.mdb'

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- lmdb takes options here, which its types leave out
const LAST = { append: true } as unknown as number

/** In the root, beside the tables: a row whose version is that of all data. Every commit changes the root's page anyway. */
const STATE = Buffer.from('state')
const NOTHING = Buffer.alloc(0)

/** How much may be written before lmdb begins without waiting for another turn of the event loop; its types leave it out. */
const EAGER: object = { txnStartThreshold: 1 }

type Rows = Dbi<Uint8Array, Uint8Array>
type Environment = RootDatabase<Uint8Array, Uint8Array>

/**
 * An LMDB environment in `folder`, which is made, or made private (0700). Several processes may have it open.
 * @throws RelayError `storage`, naming the folder, when it cannot be opened.
 */
export async function openFileEngine(folder: string, log: Log): Promise<Engine> {
  try {
    // Once, when the process starts: to load what does it without waiting takes longer than it does.
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    chmodSync(folder, 0o700)
    const path = join(folder, FILE)
    await checkHeader(path)
    return createFileEngine(openEnvironment(path), log)
  } catch (cause) {
    throw new RelayError('storage', `The store in ${folder} cannot be opened: ${reason(cause)}`, { cause })
  }
}

/**
 * `overlappingSync` is off: a commit then includes its flush, so that a write's promise resolves when the write is durable
 * and rejects when the disk is full (with it on, `flushed` never settles in that case). `eventTurnBatching` is off: only
 * what is batched explicitly is one transaction, and all that arrives while one flush is under way shares the next.
 */
function openEnvironment(path: string): Environment {
  return open<Uint8Array, Uint8Array>(path, {
    noSubdir: true,
    overlappingSync: false,
    eventTurnBatching: false,
    encoding: 'binary',
    keyEncoding: 'binary',
    useVersions: true,
    ...EAGER,
  })
}

function createFileEngine(environment: Environment, log: Log): Engine {
  const tables = new Map<string, Rows>()
  let closing: Promise<void> | undefined
  let closed = false
  const mustBeOpen = (isOpen = !closed): void => {
    if (!isOpen) throw new RelayError('storage', 'The store is closed')
  }
  const rowsOf = (table: string): Rows => {
    mustBeOpen()
    const rows = tables.get(table) ?? environment.openDB(table, { encoding: 'binary', keyEncoding: 'binary' })
    tables.set(table, rows)
    return rows
  }
  const apply = (writes: readonly RowWrite[], version: number, loan = new Loan()): void => {
    void environment.put(STATE, NOTHING, version)
    for (const { table, key, value, last } of writes) {
      const rows = rowsOf(table)
      // The promises are those of the whole commit, which is waited for; only lmdb's appending makes one of its own.
      if (value === undefined) void rows.remove(key)
      else if (last) rows.put(key, loan.lend(value), LAST).catch(() => {})
      else void rows.put(key, loan.lend(value))
    }
  }
  const group = new Group({
    look: () => {
      environment.resetReadTxn()
      return environment.getEntry(STATE)?.version
    },
    async commit(writes, expected, next) {
      const loan = new Loan()
      const committed = ifVersion(environment, expected, () => apply(writes, next, loan))
      // lmdb lets the event loop make another turn before it begins, but not when more is written than one thing.
      environment.batch(() => {}).catch(() => {})
      return committed.finally(() => loan.end())
    },
    // A child transaction, because it is undone when the callback throws halfway.
    exclude: async (decide, next) => {
      await environment.childTransaction(() => apply(decide(), next))
    },
    // Halfway through a commit it would be too late to find either wrong.
    check: (write) => {
      rowsOf(write.table)
      checkKey(write.key)
    },
  })
  const transact = async <T>(decide: (transaction: Transaction) => Decision<T>): Promise<T> => {
    mustBeOpen(!closing)
    return writing(async (isLate) => {
      const result = await group.transact((transaction) => {
        if (isLate()) throw new RelayError('storage', 'Given up')
        return decide(transaction)
      })
      if (isLate()) log.warn('A write that was given up for its time has been carried out after all')
      return result
    })
  }
  return {
    open: (table) => void reading(() => rowsOf(table)),
    get: (table, key) =>
      reading(() => {
        const written = group.written?.get(table, key)
        return written ? written.value : lent(rowsOf(table).getBinaryFast(key))
      }),
    range: (table, range) => {
      const committed = (part: RowRange): Iterable<Row> => select(() => rowsOf(table), part)
      return group.written?.range(table, range, committed) ?? committed(range)
    },
    count: (table) => reading(() => rowsOf(table).getKeysCount()),
    bytes: (table) => reading(() => bytesOf(rowsOf(table))),
    write: (writes) => transact(() => ({ result: undefined, writes })),
    transact,
    refresh: () => environment.resetReadTxn(),
    tidy: () =>
      reading(() => {
        mustBeOpen()
        environment.readerCheck()
      }),
    async [Symbol.asyncDispose]() {
      closing ??= withinLimit(async () => {
        await group.idle()
        closed = true
        await environment.close()
      })
      await closing
    },
  }
}

/** Of lmdb's one buffer for what it reads, which tells the value's length as its own. */
function lent(value: Uint8Array | undefined): Uint8Array | undefined {
  return value && new Uint8Array(value.buffer, value.byteOffset, value.length)
}

function ifVersion(environment: Environment, version: Version, write: () => void): Promise<boolean> {
  return version === undefined
    ? environment.ifNoExists(STATE, write)
    : environment.ifVersion(STATE, version, write)
}

function checkKey(key: Uint8Array): void {
  if (key.length === 0 || key.length > MAX_KEY_BYTES)
    throw new RelayError('storage', `A key of ${key.length} bytes cannot be written`)
}

/** @throws RelayError `storage` when the rows cannot be read, or the store was closed meanwhile. */
function* select(
  rowsOf: () => Rows,
  { from, to, reverse = false, limit = Infinity }: RowRange,
): Generator<Row> {
  const [start, end] = reverse ? [to, from] : [from, to]
  const range = { reverse, limit, inclusiveEnd: true, ...(start && { start }), ...(end && { end }) }
  const rows = reading(() => rowsOf().getRange(range)[Symbol.iterator]())
  try {
    for (;;) {
      const { done, value: row } = reading(() => rowsOf() && rows.next())
      if (done) return
      yield row
    }
  } finally {
    rows.return?.()
  }
}

/** Whole pages, those of the tree and those of values too large for it. */
function bytesOf(rows: Rows): number {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- lmdb declares nothing of what LMDB's mdb_stat gives
  const { pageSize, treeBranchPageCount, treeLeafPageCount, overflowPages } = rows.getStats() as Stats
  return pageSize * (treeBranchPageCount + treeLeafPageCount + overflowPages)
}

interface Stats {
  readonly pageSize: number
  readonly treeBranchPageCount: number
  readonly treeLeafPageCount: number
  readonly overflowPages: number
}

function reading<T>(read: () => T): T {
  try {
    return read()
  } catch (thrown) {
    throw toStorageError(thrown, 'read')
  }
}

async function writing<T>(write: (isLate: () => boolean) => Promise<T>): Promise<T> {
  return withinLimit(async (isLate) => {
    try {
      return await write(isLate)
    } catch (thrown) {
      throw toStorageError(await commitError(thrown), 'written')
    }
  })
}

/** Why a commit failed. lmdb tells it in a second promise, which must be handled or it ends the process. */
async function commitError(thrown: unknown): Promise<unknown> {
  if (!(thrown instanceof Error && 'commitError' in thrown)) return thrown
  try {
    return await thrown.commitError
  } catch (cause) {
    return cause
  }
}

function toStorageError(thrown: unknown, what: 'read' | 'written'): RelayError {
  if (thrown instanceof RelayError) return thrown
  return new RelayError('storage', `The store could not be ${what}: ${reason(thrown)}`, { cause: thrown })
}

function reason(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown)
}
