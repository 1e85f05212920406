import { describe, expect, it } from 'vitest'
import { selfSigned } from '../kit/certificate.js'
import { giteaDelivery, githubDelivery, post } from '../kit/delivery.js'
import { entriesOf } from '../kit/journal.js'
import { describeWith } from '../kit/needs.js'
import { connectProxy } from '../kit/network.js'
import { place } from '../kit/place.js'
import { receiver, valuesOf } from '../kit/receiver.js'
import { gosmee, smee } from '../kit/smee.js'
import { fresh, json } from './fixture.js'

const BODY = '{\n  "action": "opened",\n  "title": "\\u003cb\\u003e \\u0026 é",\n  "number": 3\n}'
const GITEA = ['--provider', 'gitea', '--provider-url', 'https://git.example.com']

const CONNECTED = { type: 'tunnel', state: 'connected', roundTrip: 'ok' }

const here = fresh(() => place({ host: 'none' }))
const target = fresh(() => receiver())

describe('relay serve --tunnel', () => {
  it('forwards what comes through a channel, byte for byte', async () => {
    await using server = await smee()
    const relay = await here.serve(...GITEA, '--tunnel', server.channel, '--forward', target.url)
    const connected = { v: 1, url: server.channel, attempt: 0, retryAt: null }
    expect(await relay.object(CONNECTED)).toMatchObject(connected)
    const delivery = giteaDelivery({ body: BODY })
    await post(server.channel, delivery)
    await target.has(1)
    const [handed] = target.received
    expect(handed?.body.toString()).toBe(BODY)
    expect(handed && valuesOf(handed, 'X-Hub-Signature-256')).toEqual(
      delivery.headers.filter(([name]) => name === 'X-Hub-Signature-256').map(([, value]) => value),
    )
    expect(await relay.object({ type: 'delivery' })).toMatchObject({ n: 1, restored: 'indented-go' })
    const shown = await here.run('show', 'last')
    expect(shown.out).toContain('restored    indented-go, after a tunnel changed the body\n')
    const { code, err } = await relay.stop()
    expect(code).toBe(0)
    for (const text of [`payload URL  ${server.channel}\n`, 'tunnel works']) expect(err).toContain(text)
    expect(err).toContain(`tunnel connected: payload URL ${server.channel}\n`)
  })

  it('forwards what comes through a channel of gosmee, which sends the bytes themselves', async () => {
    await using server = await gosmee()
    const relay = await here.serve('--tunnel', server.channel, '--forward', target.url)
    await relay.object(CONNECTED)
    await post(server.channel, githubDelivery({ body: BODY }))
    await target.has(1)
    expect(target.received[0]?.body.toString()).toBe(BODY)
    expect(await relay.object({ type: 'delivery' })).toMatchObject({ n: 1, restored: 'raw' })
  })

  it('makes a channel where only a server is named, and keeps to it, but for another server, or a new one', async () => {
    await using server = await smee()
    await using other = await smee()
    const urls: unknown[] = []
    for (const tunnel of [server.url, server.url, other.url, 'new']) {
      const relay = await here.serve('--tunnel', tunnel)
      urls.push((await relay.object({ type: 'tunnel', state: 'connected' }))['url'])
      await relay.stop()
    }
    const channelOf = ({ url }: { readonly url: string }) =>
      expect.stringMatching(new RegExp(`^${url}/[\\w-]{16}$`))
    expect(urls).toEqual([channelOf(server), urls[0], channelOf(other), channelOf(other)])
    expect(urls[3]).not.toBe(urls[2])
  })
})

// As GitHub writes them.
const id = (end: string): string => `0b989ba4-242f-11e5-81e1-c7b6966d251${end}`
const [AFTER, GENUINE, COPY, LAST] = [id('a'), id('b'), id('c'), id('d')] as const

describe('the tunnel of a server that is away', () => {
  const clock = (): number => Date.UTC(2026, 0, 1)

  it.each([
    [503, '600', 0.8, 1.2],
    [429, '600', 600, 600],
    [404, '86400', 900, 900],
  ])('%s with Retry-After: %s is tried again after %s to %s s', async (status, asked, least, most) => {
    await using server = await receiver({ status, headers: { 'retry-after': asked } })
    const relay = await here.serveWith({ seams: { clock } }, '--tunnel', `${server.url}/channel`)
    const { retryAt } = await relay.object({ type: 'tunnel', state: 'waiting', attempt: 1 })
    const seconds = (Date.parse(String(retryAt)) - clock()) / 1000
    expect(seconds).toBeGreaterThanOrEqual(least)
    expect(seconds).toBeLessThanOrEqual(most)
  })
})

describe('the tunnel of a machine that was away', () => {
  it('connects again at once after it slept, when its connection only seems to be open', async () => {
    await using server = await smee()
    let slept = 0
    const clock = (): number => Date.now() + slept
    const relay = await here.serveWith({ seams: { clock } }, '--tunnel', server.channel)
    await relay.object(CONNECTED)
    slept = 3_600_000
    const { why } = await relay.object({ type: 'tunnel', state: 'waiting' })
    expect(why).toBe('this machine slept')
    await relay.objects(CONNECTED, 2)
    await post(server.channel, githubDelivery({ id: AFTER }))
    expect(await relay.object({ type: 'delivery' })).toMatchObject({ n: 1, delivery: AFTER })
  })

  it('says once for a connection that messages are missing, however often its server says so', async () => {
    await using server = await gosmee()
    const relay = await here.serve('--tunnel', server.channel)
    await relay.object(CONNECTED)
    server.write('event: gosmee-gap\ndata: {}\n\n'.repeat(1_000))
    await post(server.channel, githubDelivery({ id: LAST }))
    await relay.object({ type: 'delivery', delivery: LAST })
    const { err } = await relay.stop()
    expect(err.split('\n').filter((line) => line.includes('did not store all messages'))).toHaveLength(1)
  })

  it('gets what came meanwhile from a server that keeps it, once and in order', async () => {
    await using server = await gosmee({ stream: 100 })
    const first = await here.serve('--tunnel', server.channel)
    await first.object(CONNECTED)
    await post(server.channel, githubDelivery({ id: 'before', body: '{"n":0}' }))
    await first.object({ type: 'delivery' })
    await first.stop()
    for (const n of [1, 2, 3])
      await post(server.channel, githubDelivery({ id: `meanwhile-${n}`, body: `{"n":${n}}` }))
    const second = await here.serve('--tunnel', server.channel)
    await second.objects({ type: 'delivery' }, 3)
    await second.stop()
    const ids = ['before', 'meanwhile-1', 'meanwhile-2', 'meanwhile-3']
    expect((await entriesOf(here)).map(({ deliveryId, body }) => [deliveryId, body.toString()])).toEqual(
      ids.map((id, n) => [id, `{"n":${n}}`]),
    )
  })
})

describe('a stranger on the channel', () => {
  it('cannot send a signed delivery again under another id', async () => {
    await using server = await smee()
    const relay = await here.serve('--tunnel', server.channel)
    await relay.object(CONNECTED)
    const body = '{"action":"opened","issue":{"number":1}}'
    const genuine = (id: string) => githubDelivery({ event: 'issues', body, id })
    await post(server.channel, genuine(GENUINE))
    await post(server.channel, genuine(COPY))
    await post(server.channel, githubDelivery({ id: LAST }))
    await relay.object({ type: 'delivery', delivery: LAST })
    const shown = await json(here.run('show', '1', '--json'))
    expect(shown).toMatchObject({ delivery: GENUINE, duplicates: 1 })
  })
})

describeWith('openssl', 'relay serve --tunnel in a company', () => {
  it('goes through its proxy, and knows its certificates', async () => {
    const certificate = selfSigned('smee.invalid')
    await using server = await smee({ certificate })
    await using proxy = await connectProxy(() => server.url)
    const { port, pathname } = new URL(server.channel)
    // A name that cannot be looked up: only the proxy can lead there.
    const channel = `https://smee.invalid:${port}${pathname}`
    await using here = await place({ host: 'none', env: { HTTPS_PROXY: proxy.url } })
    // Node reads the certificates of a process when it starts.
    const serve = (env: Record<string, string>) => here.serveWith({ built: true, env }, '--tunnel', channel)
    const stranger = await serve({})
    const { why } = await stranger.object({ type: 'tunnel', state: 'waiting' })
    expect(why).toMatch(/^its certificate is from an unknown authority/)
    await stranger.stop()
    const relay = await serve({ NODE_EXTRA_CA_CERTS: certificate.file })
    await relay.object(CONNECTED)
    server.message({ ...messageOf(githubDelivery({ body: '{"zen":"x"}' })), body: { zen: 'x' } })
    await relay.object({ type: 'delivery', n: 1 })
    expect(new Set(proxy.asked)).toEqual(new Set([`smee.invalid:${port}`]))
  })
})

function messageOf({ headers }: ReturnType<typeof githubDelivery>): Record<string, string> {
  return Object.fromEntries(headers.map(([name, value]) => [name.toLowerCase(), value]))
}
