import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { githubDelivery, post, SECRET, secretVariable, stripeDelivery } from '../kit/delivery.js'
import { hub, joining } from '../kit/hub.js'
import { entriesOf, linesOf } from '../kit/journal.js'
import { stalling } from '../kit/network.js'
import { faulty, place } from '../kit/place.js'
import { fresh } from './fixture.js'

const CONNECTED = { type: 'tunnel', state: 'connected', roundTrip: 'ok' }
const MIB = 1_048_576

const here = fresh(() => place({ host: 'none' }))

describe('what a hub has taken', () => {
  it('is 25 MiB long, and arrives byte for byte; what the workstation does not take is refused at the hub', async () => {
    await using server = await hub()
    const env = { ...here.env, ...(await joining(server)) }
    const relay = await here.serveWith({ env }, '--tunnel', '--max-body', String(25 * MIB))
    const url = String((await relay.object(CONNECTED))['url'])
    const body = JSON.stringify({ noise: randomBytes((25 * MIB - 100) / 2).toString('hex') })
    expect((await post(url, githubDelivery({ body, id: 'large' }))).status).toBe(200)
    expect((await post(url, githubDelivery({ id: 'small' }))).status).toBe(200)
    await relay.objects({ type: 'delivery' }, 2)
    await relay.stop()
    const entries = await entriesOf(here)
    expect(entries.map(({ deliveryId }) => deliveryId)).toEqual(['large', 'small'])
    expect(entries[0]?.body.equals(Buffer.from(body))).toBe(true)
    const smaller = await here.serve('--tunnel', server.address)
    await smaller.object(CONNECTED)
    expect(await post(url, githubDelivery({ body }))).toMatchObject({
      status: 413,
      body: '{"error":"Request too large"}',
    })
  })

  it('waits a day, and is not stale then: a signed time counts from when the hub received it', async () => {
    let later = 0
    const clock = (): number => Date.now() + later
    await using server = await hub({ seams: { clock } })
    const env = { ...here.env, ...(await joining(server)), [secretVariable('stripe')]: SECRET }
    const serve = () => here.serveWith({ env, seams: { clock } }, '--tunnel', '--source', 'stripe')
    const first = await serve()
    const url = String((await first.object({ ...CONNECTED, source: 'stripe' }))['url'])
    await first.stop()
    const before = Date.now()
    await post(url, stripeDelivery({ secret: SECRET, id: 'evt_1' }))
    later = 86_400_000
    const second = await serve()
    await second.object({ type: 'delivery', source: 'stripe' })
    await second.stop()
    const [line] = await linesOf(here)
    expect(Math.abs(Date.parse(String(line?.['time'])) - before)).toBeLessThan(60_000)
  })

  it('comes once, and in order, where the workstation slept 90 s, and its connection is dead after that', async () => {
    let later = 0
    const clock = (): number => Date.now() + later
    await using server = await hub({ seams: { clock } })
    await using line = await stalling(Number(new URL(server.address).port))
    const env = { ...here.env, ...(await joining(server)), RELAY_TUNNEL: `http://127.0.0.1:${line.port}` }
    const relay = await here.serveWith({ env, seams: { clock } }, '--tunnel')
    const url = String((await relay.object(CONNECTED))['url'])
    const send = async (id: string) =>
      post(url.replace(`:${line.port}`, `:${new URL(server.address).port}`), githubDelivery({ id }))
    const ids = Array.from({ length: 60 }, (_, i) => `id-${i}`)
    for (const id of ids.slice(0, 20)) expect((await send(id)).status).toBe(200)
    line.forget()
    // The hub gives some of them to the dead connection.
    for (const id of ids.slice(20, 40)) expect((await send(id)).status).toBe(200)
    later = 90_000
    for (const id of ids.slice(40)) expect((await send(id)).status).toBe(200)
    await relay.says('this machine slept')
    await relay.objects({ type: 'delivery' }, 60)
    await relay.stop()
    expect((await entriesOf(here)).map(({ deliveryId }) => deliveryId)).toEqual(ids)
  })

  it('waits while the storage of the workstation fails, and comes in its order after that', async () => {
    await using server = await hub()
    const storage = faulty()
    const env = { ...here.env, ...(await joining(server)) }
    const relay = await here.serveWith({ env, seams: { storage } }, '--tunnel')
    const url = String((await relay.object(CONNECTED))['url'])
    storage.now('fails')
    const ids = Array.from({ length: 70 }, (_, i) => `id-${i}`)
    for (const id of ids) expect((await post(url, githubDelivery({ id }))).status).toBe(200)
    expect(await linesOf(here)).toEqual([])
    await relay.says('the tunnel waits until storage works again: ')
    storage.now('works')
    await relay.objects({ type: 'delivery' }, 70)
    await relay.stop()
    expect((await entriesOf(here)).map(({ deliveryId }) => deliveryId)).toEqual(ids)
  })

  it('is nothing while its own storage fails: senders get 503, and 200 after that', async () => {
    const storage = faulty()
    await using server = await hub({ seams: { storage } })
    const env = { ...here.env, ...(await joining(server)) }
    const relay = await here.serveWith({ env }, '--tunnel')
    const url = String((await relay.object(CONNECTED))['url'])
    storage.now('fails')
    expect(await post(url, githubDelivery({ id: 'one' }))).toMatchObject({
      status: 503,
      body: '{"error":"Delivery could not be stored"}',
    })
    await relay.says('tunnel is down: the storage of the hub fails')
    storage.now('works')
    while ((await post(url, githubDelivery({ id: 'two' }))).status !== 200) await sleep(50)
    await relay.object({ type: 'delivery', delivery: 'two' })
    await relay.stop()
    expect((await entriesOf(here)).map(({ deliveryId }) => deliveryId)).toEqual(['two'])
  })

  it('counts as often as its sender sends it, where that gives no id', async () => {
    await using server = await hub()
    const env = { ...here.env, ...(await joining(server)) }
    const flags = ['--tunnel', '--source', 'open=none event=$.type', '--allow-unsigned']
    const relay = await here.serveWith({ env }, ...flags)
    const url = String((await relay.object({ ...CONNECTED, source: 'open' }))['url'])
    const body = Buffer.from('{"type":"made"}')
    const request = { headers: [['Content-Type', 'application/json']] as const, body }
    for (let i = 0; i < 3; i++) expect((await post(url, request)).status).toBe(200)
    await relay.objects({ type: 'delivery' }, 3)
    await relay.stop()
    expect(await linesOf(here)).toHaveLength(3)
  })
})
