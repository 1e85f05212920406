import { createHash } from 'node:crypto'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import path from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import { beforeAll, describe, expect, it } from 'vitest'
import { runDoctor } from '../../../../src/cli/commands/doctor/doctor.js'
import { fixtureBody } from '../../../../src/fixtures/fixture.js'
import { loadFixtures } from '../../../../src/fixtures/load.js'
import { emptyFolder, testContext } from '../../../helpers/context.js'
import { DAMAGES, damagedCopy } from '../../../store/ills/damage.js'
import { makeJournal, type Profiles } from '../../../store/ills/full-journal.js'

const COUNT = 300

let profiles: Profiles
beforeAll(async () => {
  profiles = await makeJournal(COUNT)
})

/** A copy of the database that a test may damage. */
function copyOf(folder: string): string {
  const file = path.join(emptyFolder(), 'relay.db')
  for (const name of ['relay.db', 'relay.db-wal'])
    if (existsSync(path.join(folder, name)))
      copyFileSync(path.join(folder, name), path.join(path.dirname(file), name))
  return file
}

/** What the files of a folder hold. */
function digests(folder: string): Record<string, string> {
  const names = readdirSync(folder).filter((name) => !name.endsWith('.salvaged'))
  const digest = (name: string): string =>
    createHash('sha256')
      .update(readFileSync(path.join(folder, name)))
      .digest('hex')
  return Object.fromEntries(names.map((name) => [name, digest(name)]))
}

/** Salvages the file and says what came of it. */
async function salvage(file: string, flags: { readonly out?: string } = {}) {
  const { context, out } = testContext()
  const end = await runDoctor(context, { ...flags, salvage: file, json: true }).then(
    () => 'ok',
    (error: unknown) => error,
  )
  return { end, report: out() === '' ? undefined : JSON.parse(out()) }
}

/** Of the fixtures, and of the files with damaged fields. */
function idsIn(folder: string): string[] {
  const files = readdirSync(folder).map((name) => readFileSync(path.join(folder, name), 'utf8'))
  return files.map((text) => JSON.parse(text).delivery)
}

describe('salvaging a database', () => {
  it.each(['closed', 'crashed'] as const)(
    'writes all of one that is whole as fixtures: %s',
    async (state) => {
      const file = copyOf(profiles[state])
      const before = digests(path.dirname(file))
      const { end, report } = await salvage(file)
      const folder = `${file}.salvaged`
      expect([end, report]).toEqual(['ok', { v: 1, file, folder, read: COUNT, damaged: 0, total: COUNT }])
      expect(readdirSync(folder)).toHaveLength(COUNT)
      for await (const { fixture } of loadFixtures([path.join(folder, '00000007.json')])) {
        expect(fixture).toMatchObject({ provider: 'github', event: 'release', delivery: '7' })
        expect(Buffer.from(fixtureBody(fixture)).toString()).toMatch(/^(?:7 )*7?$/)
      }
      expect(digests(path.dirname(file))).toEqual(before)
    },
  )

  it('reads all of one whose first page is lost', async () => {
    const file = copyOf(profiles.closed)
    const bytes = readFileSync(file)
    writeFileSync(file, bytes.fill(0, 0, 8192))
    const { end, report } = await salvage(file)
    expect([end, report.read]).toEqual(['ok', COUNT])
  })

  it('reads what is left of one that was cut off, and says how many are lost', async () => {
    const file = copyOf(profiles.closed)
    truncateSync(file, Math.floor(readFileSync(file).length / 2))
    const { end, report } = await salvage(file)
    expect(report.read).toBeGreaterThan(COUNT / 5)
    expect(report.read).toBeLessThan(COUNT)
    expect(end).toMatchObject({
      kind: 'unhealthy',
      message: `${report.total - report.read} of ${report.total} deliveries could not be read whole from ${file}`,
    })
    expect(idsIn(`${file}.salvaged`)).toHaveLength(report.read)
  })

  it('keeps one with a damaged field apart, so that the folder can be replayed', async () => {
    const file = copyOf(profiles.closed)
    const database = new DatabaseSync(file)
    database.prepare('UPDATE delivery SET event = ? WHERE n = 7').run('pu\nsh')
    database.close()
    const { end, report } = await salvage(file)
    expect(report).toMatchObject({ read: COUNT - 1, damaged: 1, total: COUNT })
    expect(end).toMatchObject({ kind: 'unhealthy' })
    const folder = `${file}.salvaged`
    expect(JSON.parse(readFileSync(path.join(folder, '00000007.damaged'), 'utf8'))).toMatchObject({
      delivery: '7',
      event: 'pu\nsh',
    })
    const ids: string[] = []
    for await (const { fixture } of loadFixtures([folder])) ids.push(fixture.delivery)
    expect(ids).toHaveLength(COUNT - 1)
  })

  it.each(DAMAGES)('reads every delivery that a reader row by row can read: %s', async (damage) => {
    const missed: string[] = []
    for (let seed = 1; seed <= 4; seed++) {
      const folder = damagedCopy(damage === 'damaged log' ? profiles.crashed : profiles.closed, damage, seed)
      const file = path.join(folder, 'relay.db')
      const { report } = await salvage(file)
      // After it, as reading puts the log into the database.
      const readable = rowByRow(file)
      const salvaged = readable.length > 0 ? idsIn(report.folder) : []
      missed.push(...readable.filter((id) => !salvaged.includes(id)).map((id) => `${seed}: #${id}`))
    }
    expect(missed).toEqual([])
  })

  it('needs a file and a new folder', async () => {
    const file = copyOf(profiles.closed)
    const taken = emptyFolder()
    expect((await salvage(`${file}.missing`)).end).toMatchObject({ kind: 'usage' })
    expect((await salvage(file, { out: taken })).end).toMatchObject({
      kind: 'usage',
      message: `The folder ${taken} exists. Name a new one with --out`,
    })
    const out = path.join(taken, 'new')
    expect((await salvage(file, { out })).report).toMatchObject({ folder: out, read: COUNT })
  })

  it('reads only files that cannot be changed, too, but not those of other programs', async () => {
    const file = copyOf(profiles.closed)
    chmodSync(file, 0o400)
    expect((await salvage(file)).report).toMatchObject({ read: COUNT })
    const other = path.join(emptyFolder(), 'other.db')
    const database = new DatabaseSync(other)
    database.exec('CREATE TABLE delivery (n INTEGER)')
    database.close()
    expect((await salvage(other)).end).toMatchObject({
      kind: 'storage',
      message: expect.stringContaining('belongs to another program'),
    })
  })
})

/** The ids of the deliveries that can be read with their headers and whole bodies. */
function rowByRow(file: string): string[] {
  const ids: string[] = []
  let database
  try {
    database = new DatabaseSync(file)
    const row = database.prepare('SELECT delivery_id, headers, size FROM delivery WHERE n = ?')
    const body = database.prepare('SELECT length(bytes) AS length, hex(bytes) FROM body WHERE n = ?')
    for (let n = 1; n <= COUNT; n++) {
      try {
        const [{ delivery_id: id, headers, size } = {}] = row.all(n)
        // Throws where they are damaged.
        JSON.parse(String(headers))
        const [{ length } = {}] = body.all(n)
        if (id === String(n) && size === length) ids.push(id)
      } catch {
        // This one cannot be read.
      }
    }
  } catch {
    // It cannot be opened.
  } finally {
    database?.close()
  }
  return ids
}
