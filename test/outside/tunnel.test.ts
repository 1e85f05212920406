import { describe, expect, it } from 'vitest'
import { selfSigned } from '../kit/certificate.js'
import { githubDelivery, giteaDelivery, post } from '../kit/delivery.js'
import { describeWith } from '../kit/needs.js'
import { connectProxy } from '../kit/network.js'
import { place } from '../kit/place.js'
import { receiver, valuesOf } from '../kit/receiver.js'
import { gosmee, smee } from '../kit/smee.js'

const BODY = '{\n  "action": "opened",\n  "title": "\\u003cb\\u003e \\u0026 é",\n  "number": 3\n}'
const GITEA = ['--provider', 'gitea', '--provider-url', 'https://git.example.com']

describe('relay serve --tunnel', () => {
  it('forwards what comes through a channel, byte for byte', async () => {
    await using server = await smee()
    await using target = await receiver()
    await using here = await place({ host: 'none' })
    const relay = await here.serve(...GITEA, '--tunnel', server.channel, '--forward', target.url)
    expect(await relay.object({ type: 'tunnel', state: 'connected', roundTrip: 'ok' })).toMatchObject({
      v: 1,
      url: server.channel,
      attempt: 0,
      retryAt: null,
    })
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
    const doctor = await here.run('doctor', '--json')
    expect(JSON.parse(doctor.out)).toMatchObject({
      checks: expect.arrayContaining([expect.objectContaining({ check: 'tunnel', state: 'ok' })]),
    })
    const { code, err } = await relay.stop()
    expect(code).toBe(0)
    expect(err).toContain(`payload URL  ${server.channel}\n`)
    expect(err).toContain(`tunnel connected: payload URL ${server.channel}\n`)
    expect(err).toContain('tunnel works')
  })

  it('forwards what comes through a channel of gosmee, which sends the bytes themselves', async () => {
    await using server = await gosmee()
    await using target = await receiver()
    await using here = await place({ host: 'none' })
    const relay = await here.serve('--tunnel', server.channel, '--forward', target.url)
    await relay.object({ type: 'tunnel', state: 'connected', roundTrip: 'ok' })
    await post(server.channel, githubDelivery({ body: BODY }))
    await target.has(1)
    expect(target.received[0]?.body.toString()).toBe(BODY)
    expect(await relay.object({ type: 'delivery' })).toMatchObject({ n: 1, restored: 'raw' })
  })

  it('forwards a large delivery', async () => {
    await using server = await smee()
    await using target = await receiver()
    await using here = await place({ host: 'none' })
    const relay = await here.serve(...GITEA, '--tunnel', server.channel, '--forward', target.url)
    await relay.object({ type: 'tunnel', state: 'connected', roundTrip: 'ok' })
    const body = JSON.stringify({ text: 'x'.repeat(500_000), list: Array(10_000).fill('é') }, null, 2)
    await post(server.channel, giteaDelivery({ body }))
    await target.has(1)
    expect(target.received[0]?.body.toString() === body).toBe(true)
    expect(await relay.object({ type: 'delivery' })).toMatchObject({ n: 1, restored: 'indented-go' })
    expect((await relay.stop()).code).toBe(0)
  })

  it('makes a channel where only a server is named, and keeps to it', async () => {
    await using server = await smee()
    await using here = await place({ host: 'none' })
    const urls: unknown[] = []
    for (const _ of ['first', 'second']) {
      const relay = await here.serve('--tunnel', server.url)
      urls.push((await relay.object({ type: 'tunnel', state: 'connected' }))['url'])
      await relay.stop()
    }
    expect(urls[0]).toMatch(new RegExp(`^${server.url}/[\\w-]{16}$`))
    expect(urls[1]).toBe(urls[0])
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
    expect(await stranger.object({ type: 'tunnel', state: 'waiting' })).toMatchObject({
      why: expect.stringMatching(/^its certificate is from an unknown authority/),
    })
    await stranger.stop()
    const relay = await serve({ NODE_EXTRA_CA_CERTS: certificate.file })
    await relay.object({ type: 'tunnel', state: 'connected', roundTrip: 'ok' })
    server.message({ ...messageOf(githubDelivery({ body: '{"zen":"x"}' })), body: { zen: 'x' } })
    await relay.object({ type: 'delivery', n: 1 })
    expect(new Set(proxy.asked)).toEqual(new Set([`smee.invalid:${port}`]))
  })
})

function messageOf({ headers }: ReturnType<typeof githubDelivery>): Record<string, string> {
  return Object.fromEntries(headers.map(([name, value]) => [name.toLowerCase(), value]))
}
