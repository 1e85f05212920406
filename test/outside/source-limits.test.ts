import { Webhook } from 'standardwebhooks'
import { describe, expect, it } from 'vitest'
import { clock } from '../kit/clock.js'
import { githubDelivery, type Header, post, SECRET, sign } from '../kit/delivery.js'
import { linesOf } from '../kit/journal.js'
import { place, type Place } from '../kit/place.js'
import { type Received, receiver } from '../kit/receiver.js'

/** A secret of 32 bytes, as a page shows it. */
const WHOLE = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
const OWN = 'hmac-of-mine'
const TOKEN = 'tok-5b1e77'
const JSON_LINE: Header = ['Content-Type', 'application/json']

const headerOf = ({ headers }: Received, name: string): string[] =>
  headers.filter(([each]) => each.toLowerCase() === name).map(([, value]) => value)

/** Runs relay serve with these sources, and posts to one of them. */
async function serving(here: Place, ...argv: string[]) {
  const relay = await here.serve(...argv)
  const send = async (source: string, body: string, ...lines: Header[]): Promise<number> => {
    const request = { headers: [JSON_LINE, ...lines], body: Buffer.from(body) }
    return (await post(`${relay.address}/webhook/${source}`, request)).status
  }
  return { relay, send }
}

describe('the secret of a Standard Webhook', () => {
  const id = 'msg_1'
  const body = '{"type":"user.created"}'
  const signed = (webhook: Webhook): Header[] => {
    const now = new Date(Math.floor(Date.now() / 1000) * 1000)
    return [
      ['webhook-id', id],
      ['webhook-timestamp', String(now.getTime() / 1000)],
      ['webhook-signature', webhook.sign(id, now, body)],
    ]
  }

  it('may lack the = at its end, as the reference library reads it', async () => {
    const cut = WHOLE.replace(/=+$/, '')
    await using here = await place({ host: 'none', env: { RELAY_SOURCE_STANDARD_SECRET: cut } })
    const { send } = await serving(here, '--source', 'standard')
    for (const secret of [cut, WHOLE])
      expect([secret, await send('standard', body, ...signed(new Webhook(secret)))]).toEqual([secret, 200])
  })

  it('is none where nothing is after whsec_, with which anybody could sign', async () => {
    await using here = await place({
      host: 'none',
      env: { RELAY_SOURCE_STANDARD_SECRET: WHOLE, RELAY_SOURCE_STANDARD_SECRET_PREVIOUS: 'whsec_' },
    })
    const { relay, send } = await serving(here, '--source', 'standard')
    for (const key of ['', 'whsec_']) {
      const stranger = new Webhook(key === '' ? 'AA==' : Buffer.from(key).toString('base64'))
      Object.assign(stranger, { key: Buffer.from(key) })
      expect([key, await send('standard', body, ...signed(stranger))]).toEqual([key, 401])
    }
    expect(await send('standard', body, ...signed(new Webhook(WHOLE)))).toBe(200)
    await relay.stop()
    const added = await here.runWith({ stdin: 'whsec_\n' }, 'source', 'add', 'other=standard')
    expect({ code: added.code, err: added.err }).toEqual({
      code: 2,
      err: 'error: Standard input has no secret\n',
    })
    const { code, err } = await here.runWith(
      { env: { RELAY_SOURCE_OTHER_SECRET: 'whsec_' } },
      'serve',
      '--port',
      '0',
      '--source',
      'other=standard',
    )
    expect([code, err.slice(0, 35)]).toEqual([2, 'error: There is no secret for other'])
  })
})

it('a second code host counts a delivery that the first has taken too', async () => {
  await using received = await receiver()
  await using here = await place({ host: 'none', env: { RELAY_SOURCE_HUB_SECRET: OWN } })
  const argv = ['--source', 'hub=github', '--forward', `hub/*=${received.url}`]
  const { relay } = await serving(here, ...argv)
  const of = (secret: string, hook: string) => githubDelivery({ event: 'push', id: 'guid-1', secret, hook })
  expect((await post(`${relay.address}/webhook`, of(SECRET, '1'))).status).toBe(200)
  for (let i = 0; i < 2; i++)
    expect((await post(`${relay.address}/webhook/hub`, of(OWN, '2'))).status).toBe(200)
  await received.has(1)
  await relay.stop()
  expect(await linesOf(here)).toMatchObject([
    { source: 'github', delivery: 'guid-1', duplicates: 0 },
    { source: 'hub', delivery: 'guid-1', duplicates: 1 },
  ])
})

it('what nothing proved is not signed once its source has a secret, however its headers look', async () => {
  await using received = await receiver()
  await using here = await place({ host: 'none' })
  const route = ['--forward', `pay/*=${received.url}`]
  const claims: Header = ['Stripe-Signature', `t=1,v1=${'a'.repeat(64)}`]
  received.answers(503, 503)
  const first = await serving(here, '--source', 'pay=none', ...route)
  expect(await first.send('pay', '{"id":"evt_1","type":"invoice.paid"}', claims)).toBe(200)
  await received.has(1)
  await first.relay.stop()
  for (const scheme of ['stripe', 'token header=x-token']) {
    const again = await here.serveWith(
      { env: { RELAY_SOURCE_PAY_SECRET: OWN } },
      '--source',
      `pay=${scheme}`,
      ...route,
    )
    await received.has(received.received.length === 1 ? 2 : 3)
    const last = received.received.at(-1)
    if (!last) throw new Error('nothing was received')
    expect([scheme, headerOf(last, 'stripe-signature'), headerOf(last, 'x-token')]).toEqual([
      scheme,
      [claims[1]],
      [],
    ])
    const { err } = await here.runWith({ env: { RELAY_SOURCE_PAY_SECRET: OWN } }, 'replay', '1')
    expect([scheme, err]).toEqual([
      scheme,
      'error: #1: nothing proved it when it came, so it is not signed with the secret that its source has now. --keep-signature sends it as it came; --secret-env signs it\n',
    ])
    await again.stop()
  }
})

it('a source that nothing proves is refused where a name from outside is allowed', async () => {
  await using here = await place({ host: 'none' })
  const argv = ['serve', '--port', '0', '--source', 'door=none', '--allow-host', 'relay.example']
  expect(await here.run(...argv)).toMatchObject({
    code: 2,
    err: expect.stringContaining('other machines can reach it at relay.example'),
  })
})

describe('a token', () => {
  const env = {
    RELAY_SOURCE_DOOR_SECRET: TOKEN,
    RELAY_SOURCE_BEARER_SECRET: TOKEN,
    RELAY_SOURCE_MINE_SECRET: OWN,
  }

  it('is not in the list of refused requests, to whatever address it was sent', async () => {
    await using here = await place({ host: 'none', env })
    const { relay, send } = await serving(
      here,
      '--source',
      'mine=stripe',
      '--source',
      'door=token header=x-key',
    )
    const line: Header = ['X-Key', TOKEN]
    expect(await send('mine', '{}', line)).toBe(401)
    expect(await send('door/', '{}', line)).toBe(404)
    expect(
      (await post(`${relay.address}/webhook`, { headers: [line], body: Buffer.from('{}') })).status,
    ).toBe(401)
    const shown = await Promise.all([1, 2, 3].map((id) => here.run('show', `refused:${id}`, '--json')))
    expect(shown.map(({ code }) => code)).toEqual([0, 0, 0])
    await relay.stop()
    expect(shown.map(({ out, err }) => out + err).join('') + relay.out + relay.err).not.toContain(TOKEN)
  })

  it('gives way to the password of the target’s own address', async () => {
    await using received = await receiver()
    await using here = await place({ host: 'none', env })
    const to = received.url.replace('//', '//ada:pw@')
    const argv = [
      '--source',
      'bearer=token header=authorization prefix=Bearer',
      '--forward',
      `bearer/*=${to}`,
    ]
    const { send } = await serving(here, ...argv)
    expect(await send('bearer', '{}', ['Authorization', `Bearer ${TOKEN}`])).toBe(200)
    await received.has(1)
    expect(received.received.map((each) => headerOf(each, 'authorization'))).toEqual([['Basic YWRhOnB3']])
  })
})

describe('the names in a body', () => {
  it('may be whole numbers, and null is none', async () => {
    await using here = await place({ host: 'none' })
    const { relay, send } = await serving(here, '--source', 'door=none event=$.kind id=$.id')
    for (const body of ['{"kind":7,"id":12}', '{"kind":7,"id":12}', '{"kind":null,"id":13}'])
      expect([body, await send('door', body)]).toEqual([body, 200])
    expect(await send('door', '{"kind":"a","id":1.5}')).toBe(400)
    expect((await here.run('replay', '1', '--set', 'a=1')).code).toBe(0)
    await relay.stop()
    expect(await linesOf(here)).toMatchObject([
      { event: '7', delivery: '12', duplicates: 1 },
      { event: 'webhook', delivery: '13' },
      { event: '7', delivery: expect.stringMatching(/^\d{10,16}$/), duplicates: 0 },
    ])
  })

  it('are ones that a match and a fixture can hold', async () => {
    await using here = await place({ host: 'none', env: { RELAY_SOURCE_HUB_SECRET: OWN } })
    const argv = ['--source', 'door=none event=$.kind', '--source', 'hub=github']
    const { relay, send } = await serving(here, ...argv)
    expect(await send('door', '{"kind":"/"}')).toBe(400)
    const actions = ['deploy', 'Déploy=prod!', 'a'.repeat(100)]
    for (const action of actions) {
      const body = JSON.stringify({ action })
      const lines = githubDelivery({
        event: 'repository_dispatch',
        set: { 'Content-Type': undefined },
      }).headers
      const kept = lines.filter(([name]) => !/signature/i.test(name))
      const answer = await send('hub', body, ...kept, ['X-Hub-Signature-256', sign(OWN, body)])
      expect([action, answer]).toEqual([action, 200])
    }
    await relay.stop()
    const events = ['repository_dispatch.deploy', 'repository_dispatch', 'repository_dispatch']
    expect(await linesOf(here)).toMatchObject(events.map((event) => ({ event })))
    for (const n of [1, 2, 3]) {
      const { out } = await here.run('export', String(n))
      const { code, err } = await here.runWith(
        { stdin: out, env: { RELAY_SOURCES: 'hub=github' } },
        'verify',
        '-',
      )
      expect({ code, err }).toEqual({ code: 0, err: '' })
    }
  })
})

it.each([
  ['a form', (ts: number) => `ts=${ts}&id=7&text=a+b`],
  ['JSON that curl -d sends', (ts: number) => `{"id":7, "ts":${ts}}`],
])('%s is forwarded with its signed time made new', async (_, bodyAt) => {
  const time = clock()
  await using received = await receiver()
  await using here = await place({ host: 'none', env: { RELAY_SOURCE_MINE_SECRET: OWN } })
  const argv = ['--source', 'mine=hmac header=x-sig time=$.ts id=$.id', '--forward', `mine/*=${received.url}`]
  const hex = (body: string): string => sign(OWN, body).replace('sha256=', '')
  const serve = () => here.serveWith({ seams: { clock: time.now } }, ...argv)
  received.answers(503)
  const first = await serve()
  const body = bodyAt(Math.floor(time.now() / 1000))
  const headers: Header[] = [
    ['Content-Type', 'application/x-www-form-urlencoded'],
    ['X-Sig', hex(body)],
  ]
  const { status } = await post(`${first.address}/webhook/mine`, { headers, body: Buffer.from(body) })
  expect(status).toBe(200)
  await received.has(1)
  await first.stop()
  time.set(time.now() + 3_600_000)
  await serve()
  await received.has(2)
  const renewed = bodyAt(Math.floor(time.now() / 1000))
  expect(received.received.map((each) => [each.body.toString(), headerOf(each, 'x-sig')])).toEqual([
    [body, [hex(body)]],
    [renewed, [hex(renewed)]],
  ])
})
