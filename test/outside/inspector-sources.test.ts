import { expect, it } from 'vitest'
import { clock } from '../kit/clock.js'
import { post } from '../kit/delivery.js'
import { openInspector } from '../kit/inspector.js'
import { place } from '../kit/place.js'
import { receiver, valuesOf } from '../kit/receiver.js'
import { flagsOf, requestOf, secretsOf, type Sender, SENDERS } from '../kit/senders.js'
import { fresh } from './fixture.js'

const HOUR = 3_600_000

function never(what: string): never {
  throw new Error(`no ${what}`)
}

const sender = (name: string): Sender => SENDERS[name] ?? never(name)
/** With its plain token, which the body does not take part in. */
const gitlab: Sender = {
  ...sender('gitlab'),
  secret: 'tok-3f9a1c',
  sign: (_, secret) => [
    ['X-Gitlab-Event', 'Push Hook'],
    ['X-Gitlab-Token', secret],
  ],
}
const SOURCES = [
  ['stripe', sender('stripe')],
  ['gitlab', gitlab],
  ['sentry', sender('sentry')],
] as const

const time = clock()
const target = fresh(() => receiver())
const here = fresh(() => place({ host: 'none', env: secretsOf(SOURCES) }))
const relay = fresh(() =>
  here.serveWith(
    { seams: { clock: time.now } },
    ...flagsOf(SOURCES, target.url),
    '--source',
    'open=none',
    '--forward',
    `code=push=${target.url}`,
  ),
)
const inspector = fresh(() => openInspector(here, relay))

async function read(path: string) {
  const response = await inspector.get(path)
  expect(response.status).toBe(200)
  return JSON.parse(await response.text())
}

/** Has one delivery of each source, and of the code host. */
async function deliver(): Promise<void> {
  await relay.deliver({ id: 'push-1', body: '{}' })
  for (const [name, each] of SOURCES)
    await post(`${relay.address}/webhook/${name}`, await requestOf(each, time.now()))
  const headers = [['Content-Type', 'text/plain']] as const
  await post(`${relay.address}/webhook/open`, { headers, body: Buffer.from('hello') })
  await target.has(4)
}

it('names the source of each delivery but the code host’s, and lists those of one', async () => {
  await deliver()
  const listed = async (query = '') =>
    (await read(`deliveries${query}`)).deliveries.map(
      ({ n, source = null, event, unproved = false }: Record<string, unknown>) => [
        n,
        source,
        event,
        unproved,
      ],
    )
  const stripe = [2, 'stripe', sender('stripe').event, false]
  const open = [5, 'open', 'webhook', true]
  expect(await listed()).toEqual([
    open,
    [4, 'sentry', sender('sentry').event, false],
    [3, 'gitlab', expect.stringMatching(/^Push Hook/), false],
    stripe,
    [1, null, 'push', false],
  ])
  expect(await listed('?source=stripe')).toEqual([stripe])
  expect(await listed('?event=open/*,stripe/*')).toEqual([open, stripe])
  expect((await inspector.get('deliveries?source=No')).status).toBe(400)
})

it('names each source in the state, where it sends deliveries and how they are proved, without its secret', async () => {
  const text = await (await inspector.get('state')).text()
  const schemes = [...SOURCES.map(([name, { scheme }]) => [name, scheme] as const), ['open', 'none'] as const]
  expect(JSON.parse(text).sources).toEqual(
    schemes.map(([name, scheme]) => ({ name, scheme, url: `${relay.address}/webhook/${name}` })),
  )
  for (const [, { secret }] of SOURCES) expect(text).not.toContain(secret)
})

it('says of each how it was proved, and what that does not cover', async () => {
  await deliver()
  const proofs = []
  for (const n of [2, 3, 4, 5]) {
    const { verdict, proof } = await read(`deliveries/${n}`)
    proofs.push([verdict, ...proof])
  }
  expect(proofs).toEqual([
    [
      'verified with the current secret of stripe',
      'Stripe-Signature is the HMAC-SHA256 of {timestamp}.{body}, where {body} is the exact bytes of the body, with the current secret of stripe.',
      'The body names the event, so that is proved too; headers are not signed.',
    ],
    [
      'verified with the current secret of gitlab',
      'X-Gitlab-Token was the current secret of gitlab itself. It is not stored.',
      'A token proves who sent the delivery, and nothing of what is in it.',
    ],
    [
      'verified with the current secret of sentry',
      'sentry-hook-signature is the HMAC-SHA256 of the exact bytes of the body with the current secret of sentry.',
      'It covers the body only: headers, and so the event and the delivery id, are not signed.',
    ],
    ['not verified: its source proves nothing', 'Nothing proves this delivery: its source has no secret.'],
  ])
})

it('names the source of a refused request but the code host’s', async () => {
  await relay.deliver({ id: 'push-1', secret: 'another' })
  const { tolerance = 0, secret, body } = sender('stripe')
  const late = await requestOf(sender('stripe'), time.now() - tolerance - 1000, { secret, body })
  await post(`${relay.address}/webhook/stripe`, late)
  const { refused } = await read('refused')
  expect(refused.map(({ source }: { readonly source?: string }) => source)).toEqual(['stripe', undefined])
  expect(await read('refused/2')).toMatchObject({ source: 'stripe' })
  expect(await here.run('verify', 'refused:2')).toMatchObject({
    code: 5,
    err: 'error: The signature matches, and its time does not count\n',
  })
})

it('says before it forwards one again whether the signature is made new, which its sender’s package accepts', async () => {
  await deliver()
  const { verify } = sender('stripe')
  const first = target.received.find((each) => valuesOf(each, 'stripe-signature').length > 0)
  expect((await read('deliveries/2')).again).toBe(
    'The target gets the same bytes once more, even if it succeeded there.',
  )
  time.set(time.now() + HOUR)
  expect((await read('deliveries/2')).again).toBe(
    'stripe accepts a signature for 5m, so the target gets this delivery with a new time and signature.',
  )
  expect((await inspector.send('deliveries/2/forward', {})).status).toBe(200)
  await target.has(5)
  const last = target.received.at(-1) ?? never('delivery')
  expect(last.body).toEqual(first?.body)
  expect(valuesOf(last, 'stripe-signature')).not.toEqual(first && valuesOf(first, 'stripe-signature'))
  expect(() => verify?.(last, time.now())).not.toThrow()
})

it('sends an edited copy as its source signs it, under an id of its own', async () => {
  await deliver()
  const { body, event } = sender('stripe')
  const edited = { ...JSON.parse(body), livemode: true }
  expect((await inspector.send('send', { from: 2, event, body: JSON.stringify(edited) })).status).toBe(200)
  await target.has(5)
  const last = target.received.at(-1) ?? never('delivery')
  expect(() => sender('stripe').verify?.(last, time.now())).not.toThrow()
  const { id, ...rest } = JSON.parse(last.body.toString())
  const { id: before, ...others } = edited
  expect(rest).toEqual(others)
  expect(id).not.toBe(before)
  expect(id).toMatch(/^evt_/)
  const { made, hasEventHeader } = await read('deliveries/2')
  expect([made, hasEventHeader]).toEqual([['stripe-signature'], false])
  const headers = [['Stripe-Signature', 't=1,v1=0']]
  expect((await inspector.send('send', { from: 2, event, body, headers })).status).toBe(400)
})

it.each([
  ['a form without a payload', 'command=%2Fdeploy&text=a', 'command=%2Fdeploy&text=b'],
  ['JSON that was sent as a form', '{"command":"/deploy"}', '{"command":"/undo"}'],
])('sends %s as the text that was edited', async (_, body, edited) => {
  const headers = [['Content-Type', 'application/x-www-form-urlencoded']] as const
  await post(`${relay.address}/webhook/open`, { headers, body: Buffer.from(body) })
  expect((await inspector.send('send', { from: 1, event: 'webhook', body: edited })).status).toBe(200)
  const { out } = await here.run('show', '2', '--json')
  expect(JSON.parse(out)).toMatchObject({ source: 'open', body: edited })
  expect((await read('deliveries/2')).verdict).toBe('edited copy of #1, not signed: its source has no secret')
  // The body that stands for an id is that of the original.
  const again = await inspector.send('send', { from: 1, event: 'webhook', body, headers: [...headers] })
  expect(await again.json()).toEqual({ n: 3 })
})

it.each([
  ['text/plain', 'finished: build 12 of main, all ok\nsee the log', 'text'],
  ['text/plain', '2026-01-31 12:04:11 "done"', 'text'],
  ['text/plain', '{"done": true}', 'json'],
  ['application/x-www-form-urlencoded', 'payload=finished', 'text'],
  ['application/x-www-form-urlencoded', 'payload=%7B%7D&a=1', 'form'],
  ['application/x-www-form-urlencoded', 'a=1&payload=%7B%7D', 'text'],
  ['application/json', '', 'text'],
])('calls what a source sends as %s by what it is: %j', async (type, body, bodyKind) => {
  const headers = [['Content-Type', type]] as const
  await post(`${relay.address}/webhook/open`, { headers, body: Buffer.from(body) })
  expect(await read('deliveries/1')).toMatchObject({ size: body.length, bodyKind })
})
