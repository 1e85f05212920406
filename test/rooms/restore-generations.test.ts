import * as fc from 'fast-check'
import { expect, it } from 'vitest'
import { goJson } from '../helpers/go-json.js'
import { indexHeaders } from '../../src/http/headers.js'
import { restore } from '../../src/webhook/restore.js'
import { sign } from '../helpers/sign.js'
import { GITEA, GITHUB, SECRET, SECRETS } from '../helpers/delivery.js'
import { throughSmee } from '../helpers/through-smee.js'

/** How each generation of each provider writes a payload, without the code under test. */
const WRITERS = {
  'GitHub, as JSON.stringify': (payload: unknown) => JSON.stringify(payload),
  'GitHub, with upper-case escapes': (payload: unknown) =>
    JSON.stringify(payload).replaceAll(/\\(?:u[0-9a-f]{4}|.)/g, (escape) =>
      escape.length > 2 ? `\\u${escape.slice(2).toUpperCase()}` : escape,
    ),
  'Gitea 1.15': (payload: unknown) => goJson('push', payload, '1.15'),
  'Gitea 1.15, a repository event': (payload: unknown) => goJson('repository', payload, '1.15'),
  'the newest Gitea': (payload: unknown) => goJson('push', payload, 'newest'),
  'the newest Gitea, a wiki event': (payload: unknown) => goJson('wiki', payload, 'newest'),
  'Gitea in between, and Forgejo': (payload: unknown) => withGoEscapes(goJson('push', payload, 'newest')),
  'Gitea in between, and Forgejo, a wiki event': (payload: unknown) =>
    withGoEscapes(goJson('wiki', payload, 'newest')),
} as const

type Write = (payload: unknown) => string

function withGoEscapes(json: string): string {
  return json.replaceAll(
    /[<>&\u2028\u2029]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

/** Characters that programs write differently, and text that only looks like an escape or JSON. */
const text = fc.string({
  unit: fc.oneof(
    fc.constantFrom(
      '"',
      '\\',
      '/',
      '<',
      '&',
      '\b',
      '\f',
      '\n',
      '\u001b',
      '\u007f',
      'é',
      '\u2028',
      '😀',
      '\ufffd',
    ),
    fc.constantFrom('\\u003c', '\\b', '{"id":1,"login":"a","username":"a"}', '": ', ',\n  '),
    fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }),
  ),
})
const user = fc
  .record({
    id: fc.integer({ min: -1 }),
    login: fc.stringMatching(/^[\w.-]{1,40}$/),
    name: text,
    admin: fc.boolean(),
  })
  .map(({ id, login, name, admin }) => ({ id, login, full_name: name, is_admin: admin, username: login }))
/** Written as they are, without quotes. JSON.parse keeps the value of only some of them, and their spelling of fewer. */
const number = fc
  .constantFrom('1', '-1', '9007199254740991', '9007199254740993', '1.0', '1e3', '-0')
  .map((n) => `@@${n}@@`)
const values = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    text,
    user,
    fc.constantFrom(null, true, false, [], {}),
    fc.maxSafeInteger(),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(text, tie('value'), { maxKeys: 4 }),
  ),
})).value
const payloads = fc.record({
  action: text,
  sender: user,
  value: fc.array(values, { maxLength: 4 }),
  number: fc.oneof({ weight: 4, arbitrary: fc.constant(1) }, { weight: 1, arbitrary: number }),
})
const writers = fc.constantFrom(...Object.entries(WRITERS))
const MIB = 1_048_576

/** A payload that is repeated until it is written as nearly `size` bytes. */
function enlarged(payload: object, size: number, write: Write): object {
  const times = Math.floor(size / Buffer.byteLength(write({ commits: [payload] }))) - 1
  return { ...payload, commits: Array.from({ length: Math.max(0, times) }, () => payload) }
}

/** The signed body, restored from what smee leaves of it; undefined if it is not. */
async function throughTunnel(body: string, scheme: typeof GITEA.webhook): Promise<string | undefined> {
  const lines = indexHeaders([['x-hub-signature-256', sign(SECRET, Buffer.from(body))]])
  const restored = await restore(throughSmee(body), lines, {
    secrets: SECRETS,
    scheme,
    maxBody: MIB,
  })
  return restored && Buffer.from(restored.body).toString()
}

it.each([
  ['small', 0, 300],
  ['up to 1 MiB', MIB, 30],
])(
  'any payload of any generation is restored, or lost by JSON itself: %s',
  { timeout: 60_000 },
  async (_, max, numRuns) => {
    await fc.assert(
      fc.asyncProperty(payloads, fc.noBias(fc.nat(max)), writers, async (payload, size, [name, write]) => {
        const spelled = (value: unknown): string => write(value).replaceAll(/"@@(.*?)@@"/g, '$1')
        const body = spelled(enlarged(payload, size, write))
        const isLost = write(JSON.parse(body)) !== body
        const scheme = name.startsWith('GitHub') ? GITHUB.webhook : GITEA.webhook
        const restored = await throughTunnel(body, scheme)
        // Not by `toBe`, which would print a megabyte.
        expect(restored === (isLost ? undefined : body)).toBe(true)
      }),
      { numRuns },
    )
  },
)
