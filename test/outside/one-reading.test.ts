import { describe, expect, it } from 'vitest'
import { post } from '../kit/delivery.js'
import { place } from '../kit/place.js'
import { flagsOf, requestOf, secretsOf, SENDERS, type Sender } from '../kit/senders.js'
import { objects } from './example.js'
import { fresh } from './fixture.js'

const FORM = 'application/x-www-form-urlencoded'
const TYPES = [
  'application/json',
  FORM,
  `${FORM}; charset=utf-8`,
  'text/plain',
  'multipart/form-data; boundary=a',
]
const EVIL = { type: 'evil', kind: 'evil', order: { id: 'evil' }, event: { type: 'evil', id: 'evil' } }
/** Text of a person inside JSON, which is fields where the JSON is read as a form. */
const COMMENT = `&payload=${encodeURIComponent(JSON.stringify(EVIL))}&type=evil&kind=evil&command=%2Fevil&z=`

const isJson = ({ body }: Sender): boolean => body.startsWith('{')
const senders = Object.entries(SENDERS).filter(([, sender]) => isJson(sender))

/** White space that is JSON around a value. */
const SPACES = [
  ['', ''],
  [' ', ''],
  ['\n\t', '\n'],
] as const

/** A body of a sender with a person's text in it. */
function bodyOf({ body, bodyAt }: Sender): string {
  const value: object = JSON.parse(bodyAt?.(Date.now()) ?? body)
  return JSON.stringify({ 'a&z': COMMENT, ...value })
}

describe('what a delivery says', () => {
  const here = fresh(() => place({ host: 'none', env: secretsOf(senders) }))
  const relay = fresh(() => here.serve(...flagsOf(senders)))
  const all = SPACES.flatMap((spaces) => TYPES.map((type) => [type, ...spaces] as const))

  // Each with a journal of its own: the second of two with one id is a duplicate.
  it.each(all)(
    'is what its JSON says, whatever Content-Type says: %s, %j before, %j after',
    async (type, ...spaces) => {
      for (const [name, sender] of senders) {
        const body = spaces.join(bodyOf(sender))
        const request = await requestOf({ ...sender, type }, Date.now(), { body })
        const { status } = await post(`${relay.address}/webhook/${name}`, request)
        // A code host sends forms, too: a form without a payload is refused.
        const isRefused = sender.scheme === 'github' && type.startsWith(FORM)
        expect([name, status]).toEqual([name, isRefused ? 400 : 200])
        if (isRefused) continue
        const [stored] = objects((await here.run('show', 'last', '--json')).out)
        expect(stored).toMatchObject({
          source: name,
          event: sender.event,
          payload: JSON.parse(body),
          duplicates: 0,
        })
      }
    },
  )
})

function never(): never {
  throw new Error('there is no such sender')
}

describe('what a sender of Standard Webhooks signed', () => {
  it('proves no other event, whose id, time and body are cut from it elsewhere', async () => {
    const sender = SENDERS['standard'] ?? never()
    await using here = await place({ host: 'none', env: secretsOf([['billing', sender]]) })
    const relay = await here.serve('--source', 'billing=standard')
    const now = Math.floor(Date.now() / 1000)
    const said = JSON.stringify({ type: 'payment.succeeded', data: { amount: 1_000_000 } })
    const ways = [`x.${now + 200}.${said}`, `x.${now + 200}.payload=${encodeURIComponent(said)}&z=`]
    for (const name of ways) {
      const body = JSON.stringify({ type: 'user.created', data: { name } })
      const { headers } = await requestOf(sender, Date.now() - 250_000, { body })
      const text = (header: string): string => headers.find(([each]) => each === header)?.[1] ?? ''
      expect(
        (await post(`${relay.address}/webhook/billing`, { headers, body: Buffer.from(body) })).status,
      ).toBe(200)
      const at = body.indexOf(`.${now + 200}.`)
      const id = `${text('webhook-id')}.${text('webhook-timestamp')}.${body.slice(0, at)}`
      const cut = body.slice(at + `.${now + 200}.`.length)
      for (const type of TYPES)
        expect(
          await post(`${relay.address}/webhook/billing`, {
            headers: [
              ['Content-Type', type],
              ['webhook-id', id],
              ['webhook-timestamp', String(now + 200)],
              ['webhook-signature', text('webhook-signature')],
            ],
            body: Buffer.from(cut),
          }),
        ).toMatchObject({ status: 401 })
    }
    const [refused] = objects((await here.run('log', '--refused', '--last', '1', '--json')).out)
    expect(refused).toMatchObject({
      reason: expect.stringContaining(
        'Webhook-ID, which the signature covers, contains ".", which separates it from what follows',
      ),
    })
    expect(objects((await here.run('log', '--json')).out).map(({ event }) => event)).not.toContain(
      'payment.succeeded',
    )
  })
})
