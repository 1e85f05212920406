// Reads damaged copies of a database, named by the test one a line, in every way; and row by row with the library alone. Says
// for each what differs, and how long the slowest call took, in milliseconds.
import { DatabaseSync, type DatabaseSyncInstance } from '@photostructure/sqlite'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { RelayError } from '../../../src/base/errors.js'
import { silentLog } from '../../../src/base/log.js'
import type { Journal } from '../../../src/journal/journal.js'
import { openJournal } from '../../../src/journal/open.js'
import { openDatabase } from '../../../src/store/open.js'
import { delivery } from '../../journal/rig.js'
import { say } from './talk.js'

const [, , intact = ''] = process.argv
/** What was written, by number. */
const written = rowsOf(intact)

say('ready')
for await (const folder of createInterface(process.stdin)) {
  const rows = rowsOf(folder)
  const readable = [...written.keys()].filter((n) => rows.get(n) === written.get(n))
  say({ ...(await read(folder, readable)), readable: readable.length })
}

/** The rows of each delivery that can be read, with its body, as text. */
function rowsOf(folder: string): Map<number, string> {
  const rows = new Map<number, string>()
  let database: DatabaseSyncInstance | undefined
  try {
    database = new DatabaseSync(path.join(folder, 'relay.db'))
    const row = database.prepare('SELECT * FROM delivery WHERE n = ?')
    const body = database.prepare('SELECT hex(bytes) FROM body WHERE n = ?')
    for (let n = 1; n <= 600; n++) {
      try {
        const found = row.all(n)
        if (found.length === 1) rows.set(n, JSON.stringify([found, body.all(n)]))
      } catch {
        // This one cannot be read.
      }
    }
  } catch {
    // It cannot even be opened.
  } finally {
    database?.close()
  }
  return rows
}

async function read(folder: string, readable: readonly number[]): Promise<object> {
  const logged: string[] = []
  const failures: string[] = []
  let slowest = 0
  const attempt = async <Result>(name: string, work: () => Promise<Result>): Promise<Result | undefined> => {
    const began = performance.now()
    try {
      return await work()
    } catch (error) {
      failures.push(
        `${name}: ${error instanceof RelayError ? `${error.kind}: ${error.message}` : `defect: ${String(error)}`}`,
      )
      return undefined
    } finally {
      slowest = Math.max(slowest, performance.now() - began)
    }
  }
  const database = await attempt('open', () => openDatabase({ kind: 'file', folder, thread: true }))
  if (!database) return { failures, slowest, opened: false }
  const journal = openJournal(database.sql, {
    log: { ...silentLog, error: (message) => logged.push(message) },
  })
  const ways: Record<string, () => Promise<readonly number[]>> = {
    select: async () => numbersOf(await all(journal.select())),
    after: () => allAfter(journal),
    summaries: async () => numbersOf(await journal.summaries(readable)),
    read: async () => {
      const found: number[] = []
      for (const n of readable) if ((await journal.read(n))?.deliveryId === String(n)) found.push(n)
      return found
    },
  }
  const missed: Record<string, number> = {}
  for (const [name, work] of Object.entries(ways)) {
    const found = await attempt(name, work)
    if (!found) continue
    const served = new Set(found)
    if (served.size < found.length) failures.push(`${name}: served ${found.length - served.size} twice`)
    missed[name] = readable.filter((n) => !served.has(n)).length
  }
  // What fails here fails by itself.
  await attempt('newest', () => journal.newest())
  await attempt('waiting', () => all(journal.waiting()))
  await attempt('failed', () => all(journal.select({ status: 'failed', last: 20 })))
  await attempt('event', () => all(journal.select({ events: [{ text: 'push' }], last: 20 })))
  await attempt('repo', () => all(journal.select({ repo: 'octo/demo', since: 0 })))
  await attempt('append', () => journal.append(delivery('new')))
  await attempt('sweep', () => journal.sweep({ keep: Infinity, keepMax: 1_000_000, now: Date.now() }))
  await attempt('put', () => database.store.put('key', 1))
  await attempt('close', async () => database[Symbol.asyncDispose]())
  const repeated = logged.length - new Set(logged).size
  return { failures, slowest, opened: true, missed, logged: logged.length, repeated }
}

async function all<Value>(values: AsyncIterable<Value>): Promise<Value[]> {
  const found: Value[] = []
  for await (const value of values) found.push(value)
  return found
}

async function allAfter(journal: Journal): Promise<number[]> {
  const found: number[] = []
  for (let last = 0; ;) {
    const page = numbersOf(await journal.after(last, 100))
    found.push(...page)
    if (page.length < 100) return found
    last = page.at(-1) ?? last
  }
}

function numbersOf(entries: readonly { readonly n: number }[]): number[] {
  return entries.map(({ n }) => n)
}
