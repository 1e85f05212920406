import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import path from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import { describe, expect, it } from 'vitest'
import { databaseFile, openDatabase } from '../../src/store/open.js'
import { emptyFolder } from '../helpers/context.js'
import { EMBEDDED, optionsOf } from './kinds.js'

const mode = (file: string): string => (statSync(file).mode & 0o777).toString(8)
const IN_FILE = EMBEDDED.filter((kind) => kind !== 'memory')

async function makeStore(folder: string): Promise<string> {
  await using database = await openDatabase({ kind: 'file', folder })
  await database.store.write(
    Array.from({ length: 2000 }, (_, i) => ({ type: 'put', key: `key ${i}`, value: 'x'.repeat(100) })),
  )
  return databaseFile(folder)
}

const SALVAGE = 'Write what can still be read into files with relay doctor --salvage FILE'
const DAMAGED = `it is damaged. ${SALVAGE}`
const NOT_A_DATABASE = `it is not a database, or is damaged at its beginning. ${SALVAGE}`
const NO_ACCESS = 'it cannot be opened or written. Check the permissions of the file and its folder'
const refused = (file: string, reason: string) => ({
  kind: 'storage',
  message: `The database ${file} cannot be used: ${reason.replace('FILE', file)}`,
})

function sql(file: string, statement: string): void {
  const database = new DatabaseSync(file)
  database.exec(statement)
  database.close()
}

describe.each(IN_FILE)('the folder of a database: %s', (kind) => {
  const open = (folder: string) => openDatabase(optionsOf(kind, folder))

  it('is made for its owner alone, with those above it that are missing, and all files in it', async () => {
    const folder = path.join(emptyFolder(), 'relay', 'profiles', 'my.profile')
    {
      await using database = await open(folder)
      await database.store.put('key', 1)
      expect([mode(folder), mode(path.dirname(folder))]).toEqual(['700', '700'])
      expect(readdirSync(folder)).toEqual(['relay.db', 'relay.db-shm', 'relay.db-wal'])
      expect(readdirSync(folder).map((name) => mode(path.join(folder, name)))).toEqual(['600', '600', '600'])
    }
    expect(readdirSync(folder)).toEqual(['relay.db'])
  })

  it('is closed to others when it was open to them', async () => {
    const folder = emptyFolder()
    chmodSync(folder, 0o755)
    await using _ = await open(folder)
    expect(mode(folder)).toBe('700')
  })

  it('keeps its data from one opening to the next', async () => {
    const folder = emptyFolder()
    await makeStore(folder)
    await using database = await open(folder)
    expect(await database.store.list('')).toHaveLength(2000)
    expect(await database.store.get('key 7')).toBe('x'.repeat(100))
  })

  it.each<[string, (file: string) => void, string]>([
    ['is text', (file) => writeFileSync(file, 'Dear diary, '.repeat(1000)), NOT_A_DATABASE],
    ['is a word', (file) => writeFileSync(file, 'Dear diary'), NOT_A_DATABASE],
    ['is full of zeros', (file) => writeFileSync(file, Buffer.alloc(65_536)), NOT_A_DATABASE],
    ['ends in its first page', (file) => truncateSync(file, 100), DAMAGED],
    ['ends after its first page', (file) => truncateSync(file, 4096), DAMAGED],
    ['lost its second half', (file) => truncateSync(file, statSync(file).size / 2), DAMAGED],
    [
      'is of another program',
      (file) => {
        rmSync(file)
        sql(file, 'CREATE TABLE diary (day TEXT)')
      },
      'it belongs to another program. Choose another folder with RELAY_HOME',
    ],
    [
      'has a newer schema',
      (file) => sql(file, 'UPDATE relay_schema SET version = 9, oldest = 9'),
      'it was written by a newer version of relay. Update relay, or choose another profile with --profile',
    ],
    [
      'says nothing of its schema',
      (file) => sql(file, 'DELETE FROM relay_schema'),
      'it was written by a newer version of relay. Update relay, or choose another profile with --profile',
    ],
  ])('is named, and its file left as it is, when that %s', async (_, harm, reason) => {
    const folder = emptyFolder()
    const file = await makeStore(folder)
    harm(file)
    const before = readFileSync(file)
    await expect(open(folder)).rejects.toMatchObject(refused(file, reason))
    expect(readFileSync(file).equals(before)).toBe(true)
  })

  it('works with a schema that is newer but fits', async () => {
    const folder = emptyFolder()
    const file = await makeStore(folder)
    sql(file, 'ALTER TABLE delivery ADD COLUMN colour TEXT; UPDATE relay_schema SET version = 9')
    await using database = await open(folder)
    expect(await database.store.list('')).toHaveLength(2000)
  })

  it('may hold an empty file, as a crash at the first opening leaves it', async () => {
    const folder = emptyFolder()
    writeFileSync(databaseFile(folder), '')
    await using database = await open(folder)
    expect(await database.store.list('')).toEqual([])
  })

  it('is named when the file in it is a folder, or it is in a file', async () => {
    const folder = emptyFolder()
    mkdirSync(databaseFile(folder))
    await expect(open(folder)).rejects.toMatchObject(refused(databaseFile(folder), NO_ACCESS))
    const file = path.join(folder, 'file')
    writeFileSync(file, '')
    await expect(open(path.join(file, 'profile'))).rejects.toMatchObject({
      kind: 'settings',
      message: expect.stringContaining(file),
    })
  })
})

/** Whether files can be made unchangeable, even for root. */
function canFreeze(): boolean {
  const folder = emptyFolder()
  const done = spawnSync('chattr', ['+i', folder]).status === 0
  if (done) spawnSync('chattr', ['-i', folder])
  return done
}

/** Does `work` while nothing in `frozen` can be changed. */
async function whileFrozen(frozen: string, work: () => Promise<void>): Promise<void> {
  const isRoot = process.getuid?.() === 0
  const before = statSync(frozen).mode
  if (isRoot) spawnSync('chattr', ['+i', frozen])
  else chmodSync(frozen, statSync(frozen).isDirectory() ? 0o500 : 0o400)
  try {
    await work()
  } finally {
    if (isRoot) spawnSync('chattr', ['-i', frozen])
    else chmodSync(frozen, before)
  }
}

// Root ignores modes.
describe.skipIf(process.getuid?.() === 0 && !canFreeze())('a database that cannot be written', () => {
  it.each(IN_FILE)('is named when its folder takes no files: %s', async (kind) => {
    const folder = emptyFolder()
    chmodSync(folder, 0o700)
    await whileFrozen(folder, async () => {
      const file = databaseFile(folder)
      await expect(openDatabase(optionsOf(kind, folder))).rejects.toMatchObject(refused(file, NO_ACCESS))
      expect(existsSync(file)).toBe(false)
    })
  })

  it.each(IN_FILE)('is named when its file is read-only: %s', async (kind) => {
    const folder = emptyFolder()
    const file = await makeStore(folder)
    await whileFrozen(file, async () => {
      const write = async (): Promise<void> => {
        await using database = await openDatabase(optionsOf(kind, folder))
        await database.store.put('key', 1)
      }
      await expect(write()).rejects.toMatchObject(refused(file, NO_ACCESS))
    })
    await using database = await openDatabase(optionsOf(kind, folder))
    expect(await database.store.list('')).toHaveLength(2000)
  })
})
