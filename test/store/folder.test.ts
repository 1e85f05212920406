import {
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { openDatabase } from '../../src/store/open.js'
import { emptyFolder } from '../helpers/context.js'

const mode = (file: string): string => (statSync(file).mode & 0o777).toString(8)

async function makeStore(folder: string): Promise<string> {
  await using database = await openDatabase({ kind: 'file', folder })
  await database.store.write(
    Array.from({ length: 2000 }, (_, i) => ({ type: 'put', key: `key ${i}`, value: 'x'.repeat(100) })),
  )
  return path.join(folder, 'relay.mdb')
}

describe('the folder of a file store', () => {
  it('is made for its owner alone, with those above it that are missing', async () => {
    const folder = path.join(emptyFolder(), 'relay', 'profiles', 'my.profile')
    await makeStore(folder)
    expect([mode(folder), mode(path.dirname(folder))]).toEqual(['700', '700'])
    expect(readdirSync(folder)).toEqual(['relay.mdb', 'relay.mdb-lock'])
  })

  it('is closed to others when it was open to them', async () => {
    const folder = emptyFolder()
    chmodSync(folder, 0o755)
    await makeStore(folder)
    expect(mode(folder)).toBe('700')
  })

  it('keeps its data from one opening to the next', async () => {
    const folder = emptyFolder()
    await makeStore(folder)
    await using database = await openDatabase({ kind: 'file', folder })
    expect(await database.store.list('')).toHaveLength(2000)
    expect(await database.store.get('key 7')).toBe('x'.repeat(100))
  })

  it.each<[string, (file: string) => void, string]>([
    ['is no database', (file) => writeFileSync(file, 'Dear diary, '.repeat(1000)), 'is no database'],
    ['is full of zeros', (file) => writeFileSync(file, Buffer.alloc(100_000)), 'is no database'],
    [
      'is of another format',
      (file) => writeFileSync(file, Buffer.from(readFileSync(file)).fill(9, 28, 30)),
      'is no database',
    ],
    ['ends in its first page', (file) => truncateSync(file, 100), 'is no database'],
    ['ends after its first page', (file) => truncateSync(file, 4096), 'is no database'],
    ['lost its second half', (file) => truncateSync(file, statSync(file).size / 2), 'is cut short'],
  ])('is named, and left as it is, when the file in it %s', async (_, harm, fault) => {
    const folder = emptyFolder()
    const file = await makeStore(folder)
    harm(file)
    const before = readFileSync(file)
    await expect(openDatabase({ kind: 'file', folder })).rejects.toMatchObject({
      kind: 'storage',
      message: `The store in ${folder} cannot be opened: ${file} ${fault}`,
    })
    expect(readFileSync(file).equals(before)).toBe(true)
  })

  it('is named when it, or the file in it, is something else', async () => {
    const folder = emptyFolder()
    const file = path.join(folder, 'file')
    writeFileSync(file, '')
    const inFile = openDatabase({ kind: 'file', folder: path.join(file, 'profile') })
    await expect(inFile).rejects.toMatchObject({ kind: 'storage', message: expect.stringContaining(file) })
    mkdirSync(path.join(folder, 'relay.mdb'))
    await expect(openDatabase({ kind: 'file', folder })).rejects.toMatchObject({
      kind: 'storage',
      message: expect.stringContaining(folder),
    })
  })

  it('may hold an empty file, as a crash at the first opening leaves it', async () => {
    const folder = emptyFolder()
    writeFileSync(path.join(folder, 'relay.mdb'), '')
    await using database = await openDatabase({ kind: 'file', folder })
    expect(await database.store.list('')).toEqual([])
  })
})
