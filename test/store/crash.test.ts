import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { openJournal } from '../../src/journal/open.js'
import { openDatabase } from '../../src/store/open.js'
import { emptyFolder } from '../helpers/context.js'
import { bodyOf } from '../journal/rig.js'
import { type Started, start } from './programs/start.js'

/** More with RELAY_CRASH_ROUNDS. */
const ROUNDS = Number(process.env['RELAY_CRASH_ROUNDS'] ?? 6)

interface Told {
  readonly pairs: Set<number>
  readonly rows: Set<number>
}

function note(line: string, { pairs, rows }: Told): void {
  const { pair, row }: { pair?: number; row?: number } = JSON.parse(line)
  if (pair !== undefined) pairs.add(pair)
  if (row !== undefined) rows.add(row)
}

/** Notes what the program says is durable, until it says no more. */
async function listen(program: Started, told: Told): Promise<void> {
  for (;;) {
    const line = await program.line().catch(() => undefined)
    if (line === undefined) return
    note(line, told)
  }
}

/** What is stored, and what of it is not whole. */
async function inspect(folder: string) {
  await using database = await openDatabase({ kind: 'file', folder })
  const { store } = database
  const journal = openJournal(database.sql)
  const torn: string[] = []
  const whole = { pairs: new Set<number>(), rows: new Set<number>() }
  for (const key of [...(await store.list('a:')), ...(await store.list('b:'))]) {
    const i = Number(key.slice(2))
    const value = `${i} `.repeat(1 + (i % 2000))
    if ((await store.get(`a:${i}`)) === value && (await store.get(`b:${i}`)) === value) whole.pairs.add(i)
    else torn.push(key)
  }
  let last = 0
  for (const { n, deliveryId, forwards } of await journal.after(0, 1e9)) {
    const entry = await journal.read(n)
    if (entry && bodyOf(deliveryId).equals(entry.body) && forwards['a'] && n === ++last)
      whole.rows.add(Number(deliveryId))
    else torn.push(`entry ${n}`)
  }
  // Nothing is stored twice.
  if (whole.rows.size !== last) torn.push('ids')
  const sum = Number(await store.get('left')) + Number(await store.get('right'))
  return { whole, torn, sum }
}

describe('a process killed in the middle of writes', () => {
  it.each(['here', 'thread'])(
    'leaves the old state or the new, and everything reported durable is durable: %s',
    async (where) => {
      const folder = emptyFolder()
      const told: Told = { pairs: new Set(), rows: new Set() }
      for (let round = 1; round <= ROUNDS; round++) {
        await using program = start('store/programs/write', [folder, `${round * 1_000_000}`, where])
        note(await program.line(), told)
        const listening = listen(program, told)
        await sleep(50 + Math.random() * 300)
        await program.kill()
        await listening
        const { whole, torn, sum } = await inspect(folder)
        expect({ torn, sum }).toEqual({ torn: [], sum: 1000 })
        expect([...told.pairs].filter((i) => !whole.pairs.has(i))).toEqual([])
        expect([...told.rows].filter((i) => !whole.rows.has(i))).toEqual([])
      }
      expect(told.pairs.size).toBeGreaterThan(ROUNDS)
      expect(told.rows.size).toBeGreaterThan(ROUNDS)
    },
    120_000,
  )
})
