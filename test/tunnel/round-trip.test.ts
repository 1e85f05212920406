import { describe, expect, it } from 'vitest'
import { outboundFetch } from '../../src/providers/fetch.js'
import { githubDelivery, post } from '../helpers/delivery.js'
import { scriptedServer } from '../helpers/scripted-server.js'
import { startSmee } from '../helpers/smee-server.js'
import { startTunnel } from './rig.js'

const LIMIT = { roundTrip: 150 }

describe('the message to oneself', () => {
  it('is no delivery, and sent again by others it is refused', async () => {
    await using smee = await startSmee()
    const heard: { body: string; headers: Record<string, string> }[] = []
    const listening: typeof fetch = async (url, init) => {
      if (init?.method === 'POST')
        heard.push({
          body: Buffer.from(await new Response(init.body).arrayBuffer()).toString(),
          headers: Object.fromEntries(new Headers(init.headers)),
        })
      return outboundFetch(url, init)
    }
    await using rig = await startTunnel(smee.channel, { fetch: listening })
    await rig.status({ roundTrip: 'ok' })
    expect(rig.journal.count()).toBe(0)
    expect(rig.said).toEqual([])
    expect(heard.map(({ headers }) => headers['x-github-event'])).toEqual(['ping'])
    for (const { body, headers } of heard)
      await post(smee.channel, { headers: Object.entries(headers), body: Buffer.from(body) })
    await rig.says('refused: another relay listens on this channel, and sent it to itself')
    await post(smee.channel, githubDelivery())
    await rig.stored(1)
  })

  it('does not make a delivery vanish that has its id', async () => {
    await using smee = await startSmee()
    let id = ''
    const listening: typeof fetch = async (url, init) => {
      if (init?.method !== 'POST') return outboundFetch(url, init)
      id = new Headers(init.headers).get('x-github-delivery') ?? ''
      // While relay waits for its own, which is never sent.
      await post(smee.channel, githubDelivery({ id }))
      return new Response()
    }
    await using rig = await startTunnel(smee.channel, { fetch: listening, limits: LIMIT })
    await rig.stored(1)
    expect(rig.journal.read(1)?.deliveryId).toBe(id)
    await rig.status({ roundTrip: 'it came back changed in a way that cannot be undone' })
  })

  it.each([
    ['nothing comes back', async () => new Response(), 'nothing came back within 0.15 s'],
    [
      'the server refuses it',
      async () => new Response('', { status: 413 }),
      'the server answers 413 to a delivery',
    ],
    [
      'the server is gone',
      async () => {
        throw new TypeError('fetch failed', {
          cause: Object.assign(new Error('x'), { code: 'ECONNREFUSED' }),
        })
      },
      'connection refused',
    ],
  ])('tells when %s', async (_, answer, outcome) => {
    await using smee = await startSmee()
    const fetch: typeof globalThis.fetch = (url, init) =>
      init?.method === 'POST' ? answer() : outboundFetch(url, init)
    await using rig = await startTunnel(smee.channel, { fetch, limits: LIMIT })
    expect(await rig.status({ roundTrip: outcome })).toMatchObject({ state: 'connected' })
  })

  it('is sent again until it came back once, also with the next connection', async () => {
    await using smee = await startSmee()
    let posts = 0
    const fetch: typeof globalThis.fetch = async (url, init) =>
      init?.method === 'POST' && posts++ === 0 ? new Response() : outboundFetch(url, init)
    await using rig = await startTunnel(smee.channel, { fetch, limits: LIMIT })
    await rig.status({ roundTrip: 'nothing came back within 0.15 s' })
    await rig.status({ state: 'connected', roundTrip: 'ok' })
    const seen = rig.statuses.length
    smee.hangUp()
    await rig.status({ state: 'connected' }, seen)
    expect(posts).toBe(2)
  })

  it('is told of once, while its outcome stays', async () => {
    await using smee = await startSmee()
    let posts = 0
    const fetch: typeof globalThis.fetch = async (url, init) => {
      if (init?.method !== 'POST') return outboundFetch(url, init)
      return posts++ < 5 ? new Response('', { status: 502 }) : outboundFetch(url, init)
    }
    await using rig = await startTunnel(smee.channel, { fetch })
    await rig.status({ roundTrip: 'ok' })
    expect(rig.statuses.map(({ roundTrip }) => roundTrip)).toEqual([
      null,
      'the server answers 502 to a delivery',
      'ok',
    ])
  })

  it('is nothing to a server that only answers', async () => {
    await using server = await scriptedServer(() => ({ headers: { 'content-type': 'text/html' } }))
    await using rig = await startTunnel(`${server.url}/channel`)
    expect((await rig.status({ state: 'waiting' })).why).toBe(
      'no channel is there: the server answers with text/html',
    )
    expect(server.received.slice(0, 2).map(({ method, path }) => [method, path])).toEqual([
      ['GET', '/channel'],
      ['GET', '/events/channel'],
    ])
  })
})
