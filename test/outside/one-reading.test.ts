import { readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { giteaDelivery, githubDelivery, post } from '../kit/delivery.js'
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
        const [stored] = objects((await here.run('show', 'last', '--json', '--reveal')).out)
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

const GENUINE = JSON.stringify({
  ref: 'refs/heads/main',
  commits: [],
  repository: { full_name: 'octo/demo' },
})
const FIELD = `payload=${encodeURIComponent(GENUINE)}`
const FORGED = { ref: 'refs/heads/evil', commits: [{ id: 'evil' }], repository: { full_name: 'evil/demo' } }
/** What a stranger can write around a body whose signature is known. */
const AROUND: readonly string[] = [
  JSON.stringify({ ...FORGED, x: `&${FIELD}&` }),
  JSON.stringify({ [`&${FIELD}&`]: 1, ...FORGED }),
  JSON.stringify([`&${FIELD}&`, FORGED]),
  `payload=${JSON.stringify(FORGED)}`,
  `<evil>&${FIELD}&</evil>`,
  ...['&', '?', ' ', '\n', '\ufeff', 'a', '{}&', 'x=1&', '%70ayload=x&', 'payload&'].map(
    (before) => before + FIELD,
  ),
  ...['&', '&x=1', ';x=1', '&command=evil', `&${FIELD}`, '&payload', '&%70ayload=evil', '\n', '\0'].map(
    (after) => FIELD + after,
  ),
  FIELD.replace('payload', '%70ayload'),
  FIELD.replace('payload', 'Payload'),
]

describe.each([
  // Its signature leaves out what comes after the payload, which nothing reads.
  ['gitea', giteaDelivery, { RELAY_PROVIDER: 'gitea', RELAY_PROVIDER_URL: 'https://gitea.example' }, 8],
  ['github', githubDelivery, {}, 1],
] as const)('what %s signed', (host, delivery, env, inAll) => {
  const here = fresh(() => place({ host: 'none', env }))

  it('is all that its signature gives to commands, whatever is around it and whatever Content-Type says', async () => {
    const file = path.join(here.cwd, 'out')
    const relay = await here.serveWith({ env: { OUT: file } }, '--exec', '*=cat > "$OUT"')
    let taken = 0
    const send = async (body: string, type: string): Promise<void> => {
      const { status } = await post(`${relay.address}/webhook`, delivery({ body, signed: GENUINE, type }))
      if (status !== 200) return
      taken++
      await relay.object({ type: 'attempt', n: taken })
      const [shown] = objects((await here.run('show', 'last', '--json')).out)
      const read = { payload: shown?.['payload'], repo: shown?.['repo'], ran: readFileSync(file, 'utf8') }
      expect([body, type, read]).toEqual([
        body,
        type,
        { payload: JSON.parse(GENUINE), repo: 'octo/demo', ran: GENUINE },
      ])
    }
    await send(GENUINE, 'application/json')
    expect(taken).toBe(1)
    // Gitea signs the JSON in its forms.
    await send(FIELD, FORM)
    expect(taken).toBe(host === 'gitea' ? 2 : 1)
    for (const body of AROUND) for (const type of TYPES) await send(body, type)
    expect(taken).toBe(inAll)
  })
})

describe('a form of a sender of fields', () => {
  const here = fresh(() => place({ host: 'none' }))

  it.each(['a=1&payload', 'payload', '%70ayload', 'x=%26&payload'])(
    'is one thing to what names its event, shows it and runs: %s first',
    async (start) => {
      const inner = '{"kind":"inner"}'
      const body = `${start}=${encodeURIComponent(inner)}&kind=outer`
      const file = path.join(here.cwd, 'out')
      const flags = ['--source', 'open=none event=$.kind', '--exec', 'open/*=cat > "$OUT"']
      const relay = await here.serveWith({ env: { OUT: file } }, ...flags)
      const headers = [['Content-Type', FORM]] as const
      expect(await post(`${relay.address}/webhook/open`, { headers, body: Buffer.from(body) })).toMatchObject(
        {
          status: 200,
        },
      )
      await relay.object({ type: 'attempt', n: 1 })
      const [shown] = objects((await here.run('show', '1', '--json')).out)
      const isPayload = start === 'payload'
      expect([shown?.['event'], shown?.['payload'], readFileSync(file, 'utf8')]).toEqual(
        isPayload
          ? ['inner', JSON.parse(inner), inner]
          : ['outer', Object.fromEntries(new URLSearchParams(body)), body],
      )
      const waited = await here.run('wait', 'open/*', '--where', `kind==${isPayload ? 'inner' : 'outer'}`)
      expect(waited).toMatchObject({ code: 0 })
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
