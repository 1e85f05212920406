// Holds a profile's database and does what the test says, one line each. Prints what came of it as a line of JSON.
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { createInterface } from 'node:readline'
import { silentLog } from '../../../src/base/log.js'
import { RelayError } from '../../../src/base/errors.js'
import { openJournal } from '../../../src/journal/open.js'
import { openDatabase } from '../../../src/store/open.js'
import { attempt, delivery, succeeded } from '../../journal/rig.js'
import { say } from './talk.js'

const [, , folder = '', where = 'here'] = process.argv
const logged: string[] = []
const late: number[] = []
const database = await openDatabase({ kind: 'file', folder, thread: where === 'thread' })
const journal = openJournal(database.sql, {
  // Only the first: retention keeps what waits.
  targetsOf: () => (id === 1 ? ['http://localhost/'] : []),
  log: { ...silentLog, error: (message) => logged.push(message) },
})
const delay = monitorEventLoopDelay({ resolution: 1 })
delay.enable()
let id = 0
let largest = 0

const append = async (bytes: number): Promise<number> => {
  const body = Buffer.alloc(bytes, 'x')
  const { n } = await journal.append(delivery(`${process.pid} ${id++}`, { body }), {
    onLate: (receipt) => late.push(receipt.n),
  })
  return n
}

/** What a test can ask for; each takes one number. */
const calls: Record<string, (value: number) => unknown> = {
  append,
  /** Appends until one is refused. How many were taken, and the reason. */
  async fill(bytes) {
    for (let taken = 0; ; taken++) {
      try {
        await append(bytes)
      } catch (error) {
        return { taken, reason: reason(error) }
      }
    }
  },
  /** The ends of so many tries of everything that writes, one after the other, each once. */
  async tries(rounds) {
    const ends = new Set<string>()
    for (let i = 0; i < rounds; i++)
      for (const work of [
        () => append(7000),
        () => record(1),
        () => database.store.put(`key ${i}`, 'x'.repeat(5000)),
      ])
        ends.add(await work().then(() => 'done', reason))
    return [...ends]
  },
  record,
  put: (bytes) => database.store.put(`key ${id++}`, 'x'.repeat(bytes)),
  /** So many senders, each with one delivery of 1 MB after the other until five were refused. Their ends, and the most memory used. */
  async crowd(senders) {
    const sample = setInterval(() => (largest = Math.max(largest, process.memoryUsage.rss())), 10)
    const ends = new Map<string, number>()
    await Promise.all(
      Array.from({ length: senders }, async () => {
        for (let refused = 0; refused < 5;) {
          const end = await append(1_000_000).then(() => 'done', reason)
          if (end !== 'done') refused++
          ends.set(end, (ends.get(end) ?? 0) + 1)
        }
      }),
    )
    clearInterval(sample)
    return { ends: Object.fromEntries(ends), megabytes: Math.round(largest / 1e6) }
  },
  sweep: (keepMax) => journal.sweep({ keep: Infinity, keepMax, now: Date.now() }),
  shrink: () => database.sql.shrink(),
  newest: () => journal.newest(),
  usedBytes: () => database.sql.usedBytes(),
  async check() {
    const rows = await database.sql.query<{ quick_check: string }>('PRAGMA quick_check')
    return rows.map((row) => row.quick_check)
  },
  /** The longest time, in milliseconds, for which the event loop stood still since the last call. */
  delay() {
    const ms = delay.max / 1e6
    delay.reset()
    return ms
  },
  late: () => late.splice(0),
  logged: () => logged.splice(0),
  close: () => database[Symbol.asyncDispose](),
}

function record(n: number): Promise<void> {
  return journal.record(n, attempt('http://localhost/', { at: Date.now() }), succeeded)
}

function reason(error: unknown): string {
  return error instanceof RelayError ? `${error.kind}: ${error.message}` : `not expected: ${String(error)}`
}

say('open')
for await (const line of createInterface(process.stdin)) {
  const [name = '', value = '0'] = line.split(' ')
  const began = performance.now()
  const end = await Promise.resolve(calls[name]?.(Number(value))).then(
    (result) => ({ result }),
    (error: unknown) => ({ error: reason(error) }),
  )
  say({ ...end, ms: performance.now() - began })
  if (name === 'close') break
}
process.stdin.destroy()
delay.disable()
