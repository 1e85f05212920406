import { describe, expect, it } from 'vitest'
import { sendOnce, type SendOnce } from '../../src/net/send-once.js'
import { githubDelivery, post } from '../helpers/delivery.js'
import { scriptedServer } from '../helpers/scripted-server.js'
import { smee as startSmee } from '../kit/smee.js'
import { emptyResponse, startTunnel } from './rig.js'
import { countOf, entryOf } from '../helpers/journal.js'

const LIMIT = { roundTrip: 150 }

describe('the round-trip message', () => {
  it('is not a delivery, and is refused if others send it again', async () => {
    await using smee = await startSmee()
    const sent: { body: string; headers: Record<string, string> }[] = []
    const recording: SendOnce = async (url, request) => {
      if (request.method === 'POST')
        sent.push({
          body: Buffer.from(request.body ?? '').toString(),
          headers: { ...request.headers },
        })
      return sendOnce(url, request)
    }
    await using rig = await startTunnel(smee.channel, { sendOnce: recording })
    await rig.status({ roundTrip: 'ok' })
    expect(await countOf(rig.journal)).toBe(0)
    expect(rig.logged).toEqual([])
    expect(sent.map(({ headers }) => headers['x-github-event'])).toEqual(['ping'])
    for (const { body, headers } of sent)
      await post(smee.channel, { headers: Object.entries(headers), body: Buffer.from(body) })
    expect(await rig.logLine('refused')).toEqual(
      expect.stringMatching(
        /^a tunnel message was refused: another relay on this channel sent it to itself \(unproved: event ping, delivery \S+; relay show refused:1\)$/,
      ),
    )
    await post(smee.channel, githubDelivery())
    await rig.stored(1)
  })

  it('does not swallow a delivery with the same id', async () => {
    await using smee = await startSmee()
    let id = ''
    const recording: SendOnce = async (url, request) => {
      if (request.method !== 'POST') return sendOnce(url, request)
      id = request.headers['x-github-delivery'] ?? ''
      // relay now waits for its own message, which is never sent.
      await post(smee.channel, githubDelivery({ id }))
      return emptyResponse()
    }
    await using rig = await startTunnel(smee.channel, { sendOnce: recording, limits: LIMIT })
    await rig.stored(1)
    expect((await entryOf(rig.journal, 1)).deliveryId).toBe(id)
    await rig.status({ roundTrip: 'it came back changed, and its bytes could not be restored' })
  })

  it.each([
    ['nothing comes back', async () => emptyResponse(), 'nothing came back within 0.15 s'],
    ['the server refuses it', async () => emptyResponse(413), 'the server answers 413 to a delivery'],
    [
      'the server is gone',
      async () => {
        throw Object.assign(new Error('x'), { code: 'ECONNREFUSED' })
      },
      'connection refused',
    ],
  ])('reports when %s', async (_, answer, outcome) => {
    await using smee = await startSmee()
    const send: SendOnce = (url, request) => (request.method === 'POST' ? answer() : sendOnce(url, request))
    await using rig = await startTunnel(smee.channel, { sendOnce: send, limits: LIMIT })
    expect(await rig.status({ roundTrip: outcome })).toMatchObject({ state: 'connected' })
  })

  it('is sent again until it came back, and once more on the next connection', async () => {
    await using smee = await startSmee()
    let posts = 0
    const send: SendOnce = async (url, request) =>
      request.method === 'POST' && posts++ === 0 ? emptyResponse() : sendOnce(url, request)
    await using rig = await startTunnel(smee.channel, { sendOnce: send, limits: LIMIT })
    await rig.status({ roundTrip: 'nothing came back within 0.15 s' })
    await rig.status({ state: 'connected', roundTrip: 'ok' })
    const seen = rig.statuses.length
    smee.hangUp()
    await rig.status({ state: 'connected', roundTrip: null }, seen)
    await rig.status({ state: 'connected', roundTrip: 'ok' }, seen + 2)
    expect(posts).toBe(3)
  })

  it('is reported only when its result changes', async () => {
    await using smee = await startSmee()
    let posts = 0
    const send: SendOnce = async (url, request) => {
      if (request.method !== 'POST') return sendOnce(url, request)
      return posts++ < 5 ? emptyResponse(502) : sendOnce(url, request)
    }
    await using rig = await startTunnel(smee.channel, { sendOnce: send })
    await rig.status({ roundTrip: 'ok' })
    expect(rig.statuses.map(({ roundTrip }) => roundTrip)).toEqual([
      null,
      null,
      'the server answers 502 to a delivery',
      'ok',
    ])
  })

  it('is not sent to a server without event stream', async () => {
    await using server = await scriptedServer(() => ({ headers: { 'content-type': 'text/html' } }))
    await using rig = await startTunnel(`${server.url}/channel`)
    expect((await rig.status({ state: 'waiting' })).why).toBe(
      'no channel at this address: the server answers with text/html',
    )
    expect(server.received.slice(0, 2).map(({ method, path }) => [method, path])).toEqual([
      ['GET', '/channel'],
      ['GET', '/events/channel'],
    ])
  })
})
