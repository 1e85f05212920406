import { createRequire } from 'node:module'
import { describe, expect, it } from 'vitest'
import { type Fixture, fixtureBody, fixtureLines } from '../../src/replay/fixture.js'
import { passedOn } from '../../src/http/headers.js'
import { loadFixtures } from '../../src/replay/load.js'
import { ENCODING_IDS, type EncodingId, writeJson } from '../../src/webhook/encodings.js'
import { isForm } from '../../src/webhook/signature.js'
import { indexHeaders } from '../../src/http/headers.js'
import { restore } from '../../src/webhook/restore.js'
import { sign } from '../helpers/sign.js'
import { GITEA, GITHUB, SECRET, SECRETS } from '../helpers/delivery.js'
import { formThroughSmee, throughSmee } from '../helpers/through-smee.js'

const MAX = 26_214_400

describe("GitHub's example payloads, through smee", () => {
  const require = createRequire(import.meta.url)
  const sets: { examples: object[] }[] = require('@octokit/webhooks-examples')
  const examples = sets.flatMap((set) => set.examples)

  it.each(ENCODING_IDS.slice(0, 3))('are all restored byte for byte, encoded as %s', async (id) => {
    const bodies = examples.map((example) => writeJson(id, example))
    const restoring = bodies.map(async (body) => {
      const lines = indexHeaders([['X-Hub-Signature-256', sign(SECRET, Buffer.from(body))]])
      const found = await restore(throughSmee(body), lines, {
        secrets: SECRETS,
        scheme: GITHUB.webhook,
        maxBody: MAX,
      })
      return found && Buffer.from(found.body).toString()
    })
    expect(bodies.length).toBeGreaterThan(300)
    expect(await Promise.all(restoring)).toEqual(bodies)
  })
})

describe('the fixtures, through smee', () => {
  it('are all restored byte for byte', async () => {
    const fixtures: Fixture[] = []
    for await (const { fixture } of loadFixtures(['fixtures'])) fixtures.push(fixture)
    const restoring = fixtures.map(async (fixture) => {
      const body = Buffer.from(fixtureBody(fixture)).toString()
      const lines = indexHeaders(passedOn(fixtureLines(fixture)))
      const message = isForm(lines) ? formThroughSmee(body) : throughSmee(body)
      const { webhook: scheme } = fixture.provider === 'gitea' ? GITEA : GITHUB
      const found = await restore(message, lines, { secrets: SECRETS, scheme, maxBody: MAX })
      return found && { how: found.how, body: Buffer.from(found.body).toString() }
    })
    const expected = fixtures.map((fixture) => {
      return {
        how: isForm(indexHeaders(passedOn(fixtureLines(fixture)))) ? 'form' : encodingOf(fixture),
        body: fixture.body,
      }
    })
    expect(fixtures.length).toBeGreaterThan(50)
    expect(await Promise.all(restoring)).toEqual(expected)
  })
})

function encodingOf({ provider, event, headers }: Fixture): EncodingId {
  if (provider === 'github') return 'compact'
  const isOneSpace = event === 'repository' || event === 'wiki'
  // 1.15 does not send it.
  if ('X-Gitea-Event-Type' in headers) return isOneSpace ? 'one-space' : 'indented'
  return isOneSpace ? 'one-space-users' : 'gitea-users'
}
