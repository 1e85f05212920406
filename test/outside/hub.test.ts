import { createHmac } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { githubDelivery, post, SECRET, secretVariable, stripeDelivery } from '../kit/delivery.js'
import { hub, joining } from '../kit/hub.js'
import { entriesOf, linesOf } from '../kit/journal.js'
import { stalling } from '../kit/network.js'
import { place } from '../kit/place.js'
import { receiver, valuesOf } from '../kit/receiver.js'
import { fresh, json } from './fixture.js'

const CONNECTED = { type: 'tunnel', state: 'connected', roundTrip: 'ok' }
const OK = '{"ok":true}'
/** No number of it survives JavaScript's JSON. */
const BODY = '{\n "action":"opened", "big": 12345678901234567890, "n": 1.0}'

const server = fresh(() => hub())
const here = fresh(() => place({ host: 'none' }))
const target = fresh(() => receiver())

describe('relay serve --tunnel, at a hub', () => {
  it('makes a channel with an invitation, keeps to it, and receives byte for byte', async () => {
    const env = await joining(server)
    const relay = await here.serveWith({ env: { ...here.env, ...env } }, '--tunnel', '--forward', target.url)
    const url = String((await relay.object(CONNECTED))['url'])
    expect(url).toMatch(new RegExp(`^${server.address}/[\\w-]{32}/github$`))
    const delivery = githubDelivery({ body: BODY, event: 'issues' })
    expect(await post(url, delivery)).toMatchObject({ status: 200, body: OK })
    await target.has(1)
    const [handed] = target.received
    expect(handed?.body.toString()).toBe(BODY)
    expect(handed && valuesOf(handed, 'X-Hub-Signature-256')).toHaveLength(1)
    expect(await relay.object({ type: 'delivery' })).toMatchObject({ n: 1, event: 'issues' })
    const { err } = await relay.stop()
    expect(err).toContain(`payload URL  ${url}\n`)
    // Without the invitation, which counts once.
    const again = await here.serve('--tunnel', server.address)
    expect((await again.object(CONNECTED))['url']).toBe(url)
  })

  it('gets what waited meanwhile, in order, none of it twice', async () => {
    const env = { ...here.env, ...(await joining(server)) }
    const first = await here.serveWith({ env }, '--tunnel')
    const { url } = await first.object(CONNECTED)
    await first.stop()
    const ids = Array.from({ length: 40 }, (_, i) => `72d3162e-cc78-11e3-81ab-${String(i).padStart(12, '0')}`)
    for (const id of ids) expect((await post(String(url), githubDelivery({ id }))).status).toBe(200)
    expect(await json(server.operate('list', '--json'))).toMatchObject({ waiting: 40, connected: false })
    const second = await here.serveWith({ env }, '--tunnel', '--forward', target.url)
    await target.has(40)
    await second.stop()
    const entries = await entriesOf(here)
    expect(entries.map(({ deliveryId }) => deliveryId)).toEqual(ids)
    expect(await json(server.operate('list', '--json'))).toMatchObject({ waiting: 0 })
  })

  it('keeps one connection for all that it asks of the hub', async () => {
    const port = Number(new URL(server.address).port)
    await using line = await stalling(port)
    const env = { ...here.env, ...(await joining(server)), RELAY_TUNNEL: `http://127.0.0.1:${line.port}` }
    const relay = await here.serveWith({ env }, '--tunnel')
    const url = String((await relay.object(CONNECTED))['url']).replace(`:${line.port}`, `:${port}`)
    const opened = line.count()
    for (let n = 1; n <= 30; n++) {
      expect((await post(url, githubDelivery({ id: `id-${n}` }))).status).toBe(200)
      await relay.object({ type: 'delivery', n })
    }
    expect(line.count()).toBe(opened)
    // It goes on with another one once that is closed.
    line.cut()
    expect((await post(url, githubDelivery({ id: 'last' }))).status).toBe(200)
    await relay.object({ type: 'delivery', delivery: 'last' })
    expect(line.count()).toBeLessThanOrEqual(opened + 3)
  })

  it('takes every way of proof: a signed time, a form, a token, and none', async () => {
    const sources = {
      stripe: 'stripe',
      slack: 'slack',
      gitlab: 'gitlab',
      open: 'none event=$.type',
    }
    const env = { ...here.env, ...(await joining(server)), [secretVariable('stripe')]: SECRET }
    for (const name of ['slack', 'gitlab']) env[secretVariable(name)] = SECRET
    const flags = Object.entries(sources).flatMap(([name, scheme]) => ['--source', `${name}=${scheme}`])
    const relay = await here.serveWith({ env }, '--tunnel', '--allow-unsigned', ...flags)
    const urlOf = async (source: string) => String((await relay.object({ ...CONNECTED, source }))['url'])
    await post(await urlOf('stripe'), stripeDelivery({ secret: SECRET, id: 'evt_1' }))
    const form = 'command=%2Fdeploy&text=now&trigger_id=1.2'
    const time = String(Math.floor(Date.now() / 1000))
    const mac = createHmac('sha256', SECRET).update(`v0:${time}:${form}`).digest('hex')
    const ofForm = [
      ['Content-Type', 'application/x-www-form-urlencoded'],
      ['X-Slack-Request-Timestamp', time],
      ['X-Slack-Signature', `v0=${mac}`],
    ] as const
    await post(await urlOf('slack'), { headers: ofForm, body: Buffer.from(form) })
    const json = ['Content-Type', 'application/json'] as const
    const push = [json, ['X-Gitlab-Event', 'Push Hook'], ['X-Gitlab-Token', SECRET]] as const
    await post(await urlOf('gitlab'), { headers: push, body: Buffer.from(BODY) })
    await post(await urlOf('open'), { headers: [json], body: Buffer.from('{"type": "made"}') })
    await relay.objects({ type: 'delivery' }, 4)
    await relay.stop()
    const lines = await linesOf(here)
    expect(new Map(lines.map(({ source, event }) => [source, event]))).toEqual(
      new Map([
        ['stripe', 'invoice.paid'],
        ['slack', 'deploy'],
        ['gitlab', 'Push Hook'],
        ['open', 'made'],
      ]),
    )
    expect(lines).toHaveLength(4)
  })
})
