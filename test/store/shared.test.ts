import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { Journal } from '../../src/journal/journal.js'
import type { Database } from '../../src/store/open.js'
import { openDatabase } from '../../src/store/open.js'
import { emptyFolder } from '../helpers/context.js'
import { delivery } from '../journal/rig.js'
import { optionsOf } from './kinds.js'
import { start } from './programs/start.js'

const ROUNDS = 200
const numbers = Array.from({ length: ROUNDS }, (_, i) => i)
const open = (folder: string): Promise<Database> => openDatabase({ kind: 'file', folder })

interface Won {
  readonly put: number[]
  readonly taken: number[]
  readonly deleted: number[]
}

describe('a file store that several processes have open', () => {
  it('gives each record to one of them, and loses no count', async () => {
    const folder = emptyFolder()
    await using database = await open(folder)
    const { store } = database
    await store.write(
      numbers.flatMap((i) => [
        { type: 'put', key: `take:${i}`, value: i },
        { type: 'put', key: `delete:${i}`, value: i },
      ]),
    )
    await using one = start('store/programs/race', [folder, `${ROUNDS}`])
    await using two = start('store/programs/race', [folder, `${ROUNDS}`])
    await Promise.all([one.line(), two.line()])
    for (const process of [one, two]) process.tell('go')
    const won = (await Promise.all([one.line(), two.line()])).map((line): Won => JSON.parse(line))

    for (const prize of ['put', 'taken', 'deleted'] as const) {
      const winners = won.flatMap((of) => of[prize])
      expect(winners.toSorted((a, b) => a - b)).toEqual(numbers)
    }
    const owners = await Promise.all(numbers.map((i) => store.get(`put:${i}`)))
    expect(owners).toEqual(numbers.map((i) => (won[0]?.put.includes(i) ? one : two).child.pid))
    expect(await store.get('count')).toBe(2 * ROUNDS)
    expect((await store.list('')).length).toBe(ROUNDS + 1)
  })

  it('can be made by many processes at once', async () => {
    const folder = emptyFolder()
    const processes = Array.from({ length: 6 }, () => start('store/programs/race', [folder, '1']))
    for (const process of processes) expect(await process.line()).toBe('"ready"')
    for (const process of processes) process.tell('go')
    const won = await Promise.all(
      processes.map(async (process): Promise<Won> => JSON.parse(await process.line())),
    )
    expect(won.flatMap(({ put }) => put)).toEqual([0])
    await using database = await open(folder)
    expect(await database.store.get('count')).toBe(6)
  })

  it('shows each what another has just done', async () => {
    const folder = emptyFolder()
    await using one = await open(folder)
    await using two = await open(folder)
    for (let i = 0; i < 100; i++) {
      await one.store.put('key', i)
      expect(await two.store.get('key')).toBe(i)
      await two.store.delete('key')
      expect(await one.store.get('key')).toBeUndefined()
    }
    await two[Symbol.asyncDispose]()
    await one.store.put('key', 'still open')
    expect(await one.store.get('key')).toBe('still open')
  })

  it('shows it even to one that reads twice in the same turn of its event loop', async () => {
    const folder = emptyFolder()
    await using database = await open(folder)
    await database.store.put('key', 1)
    const before = database.store.get('key')
    const remove = fileURLToPath(new URL('programs/remove.ts', import.meta.url))
    spawnSync(process.execPath, ['--import', 'tsx', remove, folder, 'key'])
    const after = database.store.get('key')
    expect([await before, await after]).toEqual([1, undefined])
  })

  it('finishes the writes under way before it closes', async () => {
    const folder = emptyFolder()
    const closing = await open(folder)
    const writes = [closing.store.put('key', 1), new Journal(closing.sql).append(delivery('1'))]
    await closing[Symbol.asyncDispose]()
    expect((await Promise.allSettled(writes)).map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled'])
    await using database = await open(folder)
    expect(await database.store.get('key')).toBe(1)
  })

  it.concurrent.each(['file', 'thread'] as const)(
    'is read while one of them is stopped in a write; another that writes fails in bounded time: %s',
    async (kind) => {
      const folder = emptyFolder()
      await (await open(folder))[Symbol.asyncDispose]()
      await using holder = start('store/programs/hold', [folder])
      await holder.line()
      holder.child.kill('SIGSTOP')
      const began = performance.now()
      await using database = await openDatabase(optionsOf(kind, folder))
      const { store } = database
      expect(await store.list('')).toEqual([])
      expect(performance.now() - began).toBeLessThan(2000)
      const ends = await Promise.allSettled([store.put('key', 2), store.take('key')])
      for (const end of ends)
        expect(end).toMatchObject({
          status: 'rejected',
          reason: {
            kind: 'storage',
            message: expect.stringMatching(/Try again, or end a relay that is stopped or hangs$/),
          },
        })
      expect(performance.now() - began).toBeLessThan(6000)
      await holder.kill()
      await store.put('key', 3)
      expect(await store.get('key')).toBe(3)
    },
  )
})
