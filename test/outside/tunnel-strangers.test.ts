import { describe, expect, it } from 'vitest'
import { giteaDelivery, githubDelivery, type WebhookRequest } from '../kit/delivery.js'
import { readMetrics } from '../kit/metrics.js'
import { place } from '../kit/place.js'
import { smee } from '../kit/smee.js'
import { fresh } from './fixture.js'

const here = fresh(() => place({ host: 'none' }))

const CONNECTED = { type: 'tunnel', state: 'connected', roundTrip: 'ok' }
const GITEA = ['--provider', 'gitea', '--provider-url', 'https://git.example.com']
const ID = '0b989ba4-242f-11e5-81e1-c7b6966d2516'
const MANY = 12
const SIZE = 900_000

/** Text that every program escapes in its own way, and what is laid out in several. */
const ODD = '[{},{"id":1,"login":"a","username":"a"},"<&>/\u2028\ufffdé\u007f\\b\\u001f"'

/** What strangers write: bodies of nearly the largest size that a channel takes. */
const BODIES = {
  'a flat object': JSON.stringify(
    Object.fromEntries(Array.from({ length: SIZE / 15 }, (_, i) => [`k${i}`, i])),
  ),
  'one long text': JSON.stringify({ a: 'x'.repeat(SIZE) }),
  'text that is escaped in many ways': `{"a":${ODD},"${'\\b'.repeat(SIZE / 2 - 100)}"]}`,
  'nested lists': `{"a":${'['.repeat(900)}${'1,'.repeat(SIZE / 2 - 1000)}1${']'.repeat(900)}}`,
}

/** Text that a form takes up to three times the bytes of, in all ways to write it, or all but one. */
const FORMS = {
  'marks in a form': JSON.stringify({ payload: "'".repeat(SIZE) }),
  'fields of a form': JSON.stringify({ a: "'é ".repeat(SIZE / 10) }),
}

type Sent = readonly [flags: readonly string[], delivery: WebhookRequest]

/** How senders write a delivery that relay has not seen from them before. */
const SENT = {
  'of GitHub': [[], githubDelivery({ id: ID })],
  'of GitHub with upper-case escapes': [[], githubDelivery({ id: ID, body: String.raw`{"zen":"\u001B"}` })],
  'of GitHub as a tool of its user writes it': [
    [],
    githubDelivery({ id: ID, body: '{\n    "zen": "é"\n}\n' }),
  ],
  'of Gitea': [GITEA, giteaDelivery({ id: ID, body: '{\n  "ref": "\\u003c"\n}' })],
  'of the newest Gitea': [GITEA, giteaDelivery({ id: ID, body: '{\n  "ref": "<"\n}' })],
} as const satisfies Record<string, Sent>

const CASES: readonly (readonly [body: string, sent: string, text: string, genuine: Sent])[] = [
  ...Object.entries({ ...BODIES, ...FORMS }).map(
    ([body, text]) => [body, 'of GitHub', text, SENT['of GitHub']] as const,
  ),
  ...Object.entries(SENT).map(
    ([sent, genuine]) => ['one long text', sent, BODIES['one long text'], genuine] as const,
  ),
]

/** The message that a server like smee.io writes of a delivery: with all its headers, so with the length of its body. */
function messageOf({ headers, body }: WebhookRequest): object {
  const members = headers.map(([name, value]) => [name.toLowerCase(), value])
  const length = String(body.length)
  return { ...Object.fromEntries(members), 'content-length': length, body: JSON.parse(body.toString()) }
}

/** How many messages the running relay has refused for their signature. */
async function refused({ address }: { readonly address: string }): Promise<number> {
  const { values = {} } = (await readMetrics(address))['relay_deliveries_refused_total'] ?? {}
  return Number(values['reason=invalid_signature'])
}

describe('messages of a stranger, with signatures that match nothing', () => {
  it.each(CASES)(
    'do not make a genuine delivery wait until all are refused: %s, %s',
    async (kind, __, text, [flags, delivery]) => {
      await using server = await smee()
      const relay = await here.serve(...flags, '--metrics', '--tunnel', server.channel)
      await relay.object(CONNECTED)
      const type = kind in FORMS ? 'application/x-www-form-urlencoded' : 'application/json'
      const json = messageOf(githubDelivery({ secret: 'another', body: text }))
      const forged = { ...json, 'content-type': type }
      for (let count = 0; count < MANY; count++) server.message(forged)
      server.message(messageOf(delivery))
      expect(await relay.object({ type: 'delivery' })).toMatchObject({ n: 1, delivery: ID })
      expect(await refused(relay)).toBeLessThan(MANY)
      await expect.poll(() => refused(relay), { timeout: 60_000 }).toBe(MANY)
    },
  )
})
