import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { place } from '../kit/place.js'
import { run } from '../kit/run.js'
import { shared } from './fixture.js'

const PAGE = readFileSync('docs/senders.md', 'utf8')
const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'

/** The commands of the page, in code and in its text. */
const commands = [
  ...new Set(
    Array.from(PAGE.matchAll(/^(relay .*)$|`(relay [^`]+)`/gm), ([, line, inText]) =>
      (line ?? inText ?? '').replace(/ +# .*$/, '').trim(),
    ),
  ),
]
/** Those that begin so, but for what waits for a sender. */
const beginning = (start: string): string[] =>
  commands.filter((each) => each.startsWith(start) && !each.endsWith(' --handshake'))

/** The words of a command as a shell reads them, after its first. */
const wordsOf = (command: string): string[] =>
  Array.from(command.matchAll(/(?:'[^']*'|[^\s'])+/g), ([word]) => word.replaceAll("'", '')).slice(1)

describe('docs/senders.md', () => {
  // With what the page adds, in its order.
  const here = shared(() => place({ host: 'none' }))

  it.each(beginning('relay source add '))('%s stores a secret', async (command) => {
    const { code, err } = await here.runWith({ stdin: `${SECRET}\n` }, ...wordsOf(command))
    expect([code, err]).toEqual([0, expect.not.stringContaining(SECRET)])
  })

  it.each(beginning('relay serve -'))('%s serves', async (command) => {
    const [, ...flags] = wordsOf(command)
    await using relay = await here.serve(...flags)
    expect(relay.address).toMatch(/^http:/)
    expect(relay.err).not.toContain('warning')
  })

  it('names every scheme', async () => {
    const { out } = await run(['completion', 'bash', '--', 'serve', '--source', ''])
    const names = out.trim().split('\n')
    expect(names).toContain('stripe')
    const rows = new Set(Array.from(PAGE.matchAll(/^\| `([a-z\d-]+)`/gm), ([, name]) => name))
    const own = new Set(['gitea', 'hmac', 'token', 'basic', 'none'])
    expect(names.filter((name) => !own.has(name) && !rows.has(name))).toEqual([])
  })
})
