import { createRequire } from 'node:module'
import { describe, expect, it } from 'vitest'
import { Journal } from '../../src/journal/journal.js'
import { openDatabase } from '../../src/store/open.js'
import { createIntake } from '../../src/webhook/intake.js'
import { GITHUB, githubDelivery, SECRETS } from '../helpers/delivery.js'
import { entriesOf, nowhere } from '../helpers/journal.js'

/** Bytes as text, which compares faster. Latin1 loses nothing. */
const toText = (bytes: Uint8Array = new Uint8Array()): string => Buffer.from(bytes).toString('latin1')

describe("GitHub's example payloads", () => {
  it('are all stored byte for byte', async () => {
    const require = createRequire(import.meta.url)
    const examples: {
      name: string
      examples: { action?: string }[]
    }[] = require('@octokit/webhooks-examples')
    const journal = new Journal((await openDatabase({ kind: 'memory', folder: '' })).sql)
    const intake = createIntake({ provider: GITHUB, secrets: SECRETS, journal, plan: nowhere })
    const sent = examples.flatMap(({ name, examples }) => examples.map((example) => ({ name, example })))
    const requests = sent.map(({ name, example }, i) =>
      githubDelivery({ event: name, id: `${i}`, body: JSON.stringify(example, null, i % 3) }),
    )
    for (const request of requests) await intake.receive(request)
    expect(sent.length).toBeGreaterThan(300)
    const stored = (await entriesOf(journal)).map(({ event, action, body }) => [event, action, toText(body)])
    const expected = sent.map(({ name, example }, i) => [
      name,
      example.action ?? null,
      toText(requests[i]?.body),
    ])
    expect(stored).toEqual(expected)
  })
})
