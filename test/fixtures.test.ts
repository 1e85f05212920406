import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { Secret } from '../src/base/secret.js'
import { PROVIDER_NAMES } from '../src/base/settings.js'
import { openJournal } from '../src/journal/open.js'
import { createProvider } from '../src/providers/open.js'
import { openDatabase } from '../src/store/open.js'
import { createIntake } from '../src/webhook/intake.js'

/** What all fixtures are signed with; it is published, and protects nothing. */
const SECRET = new Secret("It's a Secret to Everybody")

interface Fixture {
  readonly relay: 1
  readonly provider: (typeof PROVIDER_NAMES)[number]
  readonly event: string
  readonly delivery: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

const files = readdirSync('fixtures', { recursive: true, encoding: 'utf8' }).filter((file) =>
  file.endsWith('.json'),
)

describe('fixtures', () => {
  it('are there for GitHub and for Gitea', () => {
    expect(new Set(files.map((file) => file.split('/')[0]))).toEqual(new Set(['github', 'gitea']))
  })

  it.each(files)('%s is taken in, byte for byte', async (file) => {
    const fixture: Fixture = JSON.parse(readFileSync(`fixtures/${file}`, 'utf8'))
    await using database = await openDatabase({ kind: 'memory', folder: '' })
    const journal = openJournal(database)
    const provider = createProvider({ name: fixture.provider, url: 'https://git.example.com' })
    const intake = createIntake({ provider, secrets: { current: SECRET }, journal })
    const body = Buffer.from(fixture.body)
    expect(await intake.receive({ headers: Object.entries(fixture.headers), body })).toEqual({
      n: 1,
      duplicate: false,
      targets: [],
    })
    const entry = journal.read(1)
    expect(entry).toMatchObject({ event: fixture.event, deliveryId: fixture.delivery, verifiedBy: 'current' })
    expect(Buffer.from(entry?.body ?? [])).toEqual(body)
  })
})
