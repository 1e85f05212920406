import { readFileSync, statSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { databaseFile, openDatabase } from '../../src/store/open.js'
import { emptyFolder } from '../helpers/context.js'
import { describeWith } from '../kit/needs.js'
import { optionsOf } from './kinds.js'
import { start } from './programs/start.js'

/** Opens by each of the processes that a run must see, while others write. */
const OPENS = 30

describe('what is written while other processes open the database', () => {
  it.each(['file', 'thread'] as const)('is all there, for everybody: %s', async (kind) => {
    const folder = emptyFolder()
    await using one = start('store/programs/open', [folder])
    await using two = start('store/programs/open', [folder])
    await Promise.all([one.line(), two.line()])
    const keys: string[] = []
    {
      await using database = await openDatabase(optionsOf(kind, folder))
      const end = performance.now() + 1500
      for (let i = 0; performance.now() < end; i++) {
        const key = `key:${String(i).padStart(6, '0')}`
        await database.store.put(key, i)
        keys.push(key)
      }
      for (const opener of [one, two]) opener.tell('stop')
      for (const opener of [one, two]) expect(Number(await opener.line())).toBeGreaterThan(OPENS)
      expect(await database.store.list('key:')).toEqual(keys)
    }
    await using database = await openDatabase({ kind: 'file', folder })
    expect(await database.store.list('key:')).toEqual(keys)
  })
})

describeWith('Linux', 'a process that opens the database twice', () => {
  // They end when the process closes any descriptor of the file, whoever opened it (fcntl).
  it('keeps the locks that it has', async () => {
    const folder = emptyFolder()
    const locks = (): string[] =>
      readFileSync('/proc/locks', 'utf8')
        .split('\n')
        .filter((line) => line.includes(`:${statSync(databaseFile(folder)).ino} `))
        .map((line) => line.replace(/^\d+: /, ''))
    await using database = await openDatabase({ kind: 'file', folder })
    await database.store.put('first', 1)
    const before = locks()
    expect(before).toHaveLength(1)
    await using again = await openDatabase({ kind: 'file', folder })
    await again.store.put('second', 2)
    expect(locks()).toEqual(before)
  })
})
