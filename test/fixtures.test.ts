import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { describe, expect, it } from 'vitest'
import { fixtureFiles } from '../scripts/fixture-set/files.js'
import { fixtureBody, fixtureLines, type Fixture } from '../src/fixtures/fixture.js'
import { passedOn } from '../src/http/headers.js'
import { loadFixtures } from '../src/fixtures/load.js'
import { parseFixture } from './helpers/fixture.js'
import { Journal } from '../src/journal/journal.js'
import { openDatabase } from '../src/store/open.js'
import { nowhere } from './helpers/journal.js'
import { createIntake } from '../src/webhook/intake.js'
import { GITEA, GITHUB, SECRETS } from './helpers/delivery.js'

const FOLDERS = ['fixtures', 'test/fixtures/github']
const SCHEMA = 'fixtures/fixture.schema.json'

const generated = fixtureFiles()
const gitea = readdirSync('fixtures/gitea').map((file) => `fixtures/gitea/${file}`)
const files = [...generated.keys(), ...gitea].filter((file) => file !== SCHEMA)
const validate = new Ajv2020().compile(JSON.parse(generated.get(SCHEMA) ?? ''))

describe('fixtures', () => {
  it('are what `npm run fixtures` writes, byte for byte, and those of Gitea', () => {
    const entries = FOLDERS.flatMap((folder) => readdirSync(folder, { recursive: true, withFileTypes: true }))
    const found = entries
      .filter((entry) => entry.isFile())
      .map((entry) => path.join(entry.parentPath, entry.name))
    expect(found.toSorted()).toEqual([SCHEMA, ...files].toSorted())
    for (const [file, text] of generated) expect(readFileSync(file, 'utf8')).toBe(text)
  })

  it('cover both providers, JSON and forms, text and bytes', async () => {
    const shapes = new Set<string>()
    for await (const { fixture } of loadFixtures(FOLDERS)) {
      const { 'Content-Type': type } = fixture.headers
      shapes.add(`${fixture.provider} ${String(type)} ${fixture.body === undefined ? 'bytes' : 'text'}`)
    }
    expect([...shapes].toSorted()).toEqual([
      'gitea application/json text',
      'gitea application/x-www-form-urlencoded text',
      'github application/json text',
      'github application/x-www-form-urlencoded bytes',
      'github application/x-www-form-urlencoded text',
    ])
  })

  it("have Gitea's JSON as Go writes it", () => {
    const { body } = read('fixtures/gitea/push.json')
    expect(body?.split('\n').find((line) => line.includes('Webhooks'))).toBe(
      String.raw`      "message": "Webhooks \u003cYay\u003e \u0026 more \u2028\u2029 café 🚀\n",`,
    )
  })

  it('have ids of their own', () => {
    expect(new Set(files.map((file) => read(file).delivery)).size).toBe(files.length)
  })

  it.each(files)('%s is valid, and taken in byte for byte', async (file) => {
    const fixture = read(file)
    expect(validate(fixture)).toBe(true)
    const body = Buffer.from(fixtureBody(fixture))
    const entry = await takeIn(fixture)
    expect(entry).toMatchObject({ event: fixture.event, deliveryId: fixture.delivery, verifiedBy: 'current' })
    expect(Buffer.from(entry?.body ?? []).equals(body)).toBe(true)
  })
})

describe('fixture.schema.json', () => {
  const { body, ...rest } = read('fixtures/github/ping.json')

  it.each([
    { ...rest, bodyBase64: 'AAA=' },
    { ...rest, payload: {}, $schema: 'x' },
    { ...rest, body, headers: { a: ['b', 'c'] } },
  ])('takes what the loader takes (%#)', (fixture) => {
    expect([validate(fixture), loads(fixture)]).toEqual([true, true])
  })

  it.each([
    rest,
    { ...rest, body, payload: {} },
    { ...rest, body, boddy: '' },
    { ...rest, body, relay: 2 },
    { ...rest, body, event: '' },
    { ...rest, body, delivery: 'a b' },
    { ...rest, body, headers: { a: 'b\n' } },
    { ...rest, body, headers: { a: [] } },
    { ...rest, body, headers: { 'a b': 'c' } },
    { ...rest, bodyBase64: '-_' },
    { ...rest, payload: [] },
  ])('refuses what the loader refuses (%#)', (fixture) => {
    expect([validate(fixture), loads(fixture)]).toEqual([false, false])
  })
})

function read(file: string): Fixture {
  return parseFixture(readFileSync(file, 'utf8'), file)
}

function loads(fixture: object): boolean {
  try {
    parseFixture(JSON.stringify(fixture), 'x.json')
    return true
  } catch {
    return false
  }
}

async function takeIn(fixture: Fixture) {
  await using database = await openDatabase({ kind: 'memory', folder: '' })
  const journal = new Journal(database.sql)
  const provider = fixture.provider === 'gitea' ? GITEA : GITHUB
  const intake = createIntake({
    senders: () => ({ scheme: provider.webhook, secrets: SECRETS }),
    journal,
    plan: nowhere,
  })
  await intake.receive(
    { headers: passedOn(fixtureLines(fixture)), body: fixtureBody(fixture) },
    { source: provider.name },
  )
  return await journal.read(1)
}
