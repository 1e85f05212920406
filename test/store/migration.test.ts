import { DatabaseSync } from '@photostructure/sqlite'
import { expect, it } from 'vitest'
import { openJournal } from '../../src/journal/open.js'
import { databaseFile, openDatabase } from '../../src/store/open.js'
import { VERSION } from '../../src/store/schema.js'
import { emptyFolder } from '../helpers/context.js'
import { attempt, delivery, succeeded } from '../journal/rig.js'
import { backTo, EARLIER } from './earlier-schema.js'

/** A database as an earlier version left it: this program's, without what later versions added. */
async function oldDatabase(version = 1): Promise<string> {
  const folder = emptyFolder()
  {
    await using database = await openDatabase({ kind: 'file', folder })
    const journal = openJournal(database.sql, { targetsOf: () => ['a'] })
    await journal.append(delivery('old'))
    await journal.record(1, attempt('a'), succeeded)
  }
  const file = new DatabaseSync(databaseFile(folder))
  file.exec(backTo(version).join(';'))
  file.close()
  return folder
}

const versionOf = (folder: string): unknown => {
  const file = new DatabaseSync(databaseFile(folder))
  const row: unknown = file.prepare('SELECT version, oldest FROM relay_schema').get()
  file.close()
  return { ...Object(row) }
}

const CASES = EARLIER.flatMap((version) =>
  (['file', 'thread'] as const).map((kind) => [version, kind] as const),
)

it.each(CASES)(
  'a database of version %i is brought up to date, with all it holds: %s',
  async (version, kind) => {
    const folder = await oldDatabase(version)
    {
      await using database = await openDatabase({ kind: 'file', folder, thread: kind === 'thread' })
      const journal = openJournal(database.sql, { targetsOf: () => ['a'] })
      expect(await journal.attempts(1)).toEqual([attempt('a')])
      await journal.append(delivery('new'))
      const answered = attempt('a', { headers: [['x-reply', 'yes']] })
      await journal.record(2, answered, succeeded)
      expect(await journal.attempts(2)).toEqual([answered])
    }
    expect(versionOf(folder)).toEqual({ version: VERSION, oldest: 1 })
  },
)

it('is brought up to date once, by whichever of several comes first', async () => {
  const folder = await oldDatabase()
  const databases = await Promise.all(
    Array.from({ length: 4 }, () => openDatabase({ kind: 'file', folder, thread: true })),
  )
  for (const database of databases) {
    expect(await openJournal(database.sql).attempts(1)).toEqual([attempt('a')])
    await database[Symbol.asyncDispose]()
  }
  expect(versionOf(folder)).toEqual({ version: VERSION, oldest: 1 })
})

it('lets an earlier program continue, which has the database open', async () => {
  const folder = await oldDatabase()
  const earlier = new DatabaseSync(databaseFile(folder))
  const insert = earlier.prepare(
    `INSERT INTO attempt (n, seq, target, at, outcome, status, ms, answer, error, count) VALUES (1, 2, 'a', 1, 'succeeded', 200, 1, x'00', NULL, 1)`,
  )
  await using database = await openDatabase({ kind: 'file', folder })
  insert.run()
  earlier.close()
  expect(await openJournal(database.sql).attempts(1)).toHaveLength(2)
})
