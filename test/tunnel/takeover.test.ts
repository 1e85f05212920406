import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { sign } from '../../src/webhook/signature.js'
import { githubDelivery, post, SECRET } from '../helpers/delivery.js'
import { entriesOf, summariesOf } from '../helpers/journal.js'
import { createServer, type ServerResponse } from 'node:http'
import { once } from 'node:events'
import { portOf } from '../helpers/scripted-server.js'
import { smee as startSmee } from '../kit/smee.js'
import { startWire } from '../helpers/wire.js'
import { startTunnel } from './rig.js'

function numbered(n: number): string {
  const body = JSON.stringify({ n })
  const signature = sign(SECRET, Buffer.from(body))
  return `{"x-github-event":"push","x-github-delivery":"${randomUUID()}","x-hub-signature-256":"${signature}","body":${body}}`
}

/** A server that sends each connection exactly what the test writes to it. */
async function startScript() {
  const streams: ServerResponse[] = []
  const changed = new EventTarget()
  const server = createServer((request, response) => {
    request.resume()
    if (request.method === 'POST') {
      response.writeHead(500).end()
      return
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
    streams.push(response)
    changed.dispatchEvent(new Event('connection'))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    channel: `http://127.0.0.1:${portOf(server)}/channel`,
    /** The connection with this index. */
    async connection(index: number) {
      while (!streams[index]) await once(changed, 'connection')
      const stream = streams[index]
      return {
        closed: new Promise<void>((resolve) => stream.on('close', resolve)),
        end: () => stream.end(),
        /** Writes events. Each connection numbers them from 0, as smee's does. */
        send: (...messages: readonly string[]) =>
          void stream.write(messages.map((message, id) => `id: ${id}\ndata: ${message}\n\n`).join('')),
      }
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

/** A tunnel with two connections: this machine slept, and the first is still open. */
async function afterSleep(linger: number) {
  const server = await startScript()
  let slept = 0
  const rig = await startTunnel(server.channel, {
    clock: () => Date.now() + slept,
    limits: { linger },
  })
  const old = await server.connection(0)
  await rig.status({ state: 'connected' })
  const seen = rig.statuses.length
  slept = 60_000
  const next = await server.connection(1)
  await rig.status({ state: 'connected' }, seen)
  return {
    rig,
    old,
    next,
    numbers: async () =>
      (await entriesOf(rig.journal)).map(({ body }) => JSON.parse(String(Buffer.from(body))).n),
    duplicates: async () =>
      (await summariesOf(rig.journal)).reduce((sum, { duplicates }) => sum + duplicates, 0),
    async [Symbol.asyncDispose]() {
      await rig[Symbol.asyncDispose]()
      await server[Symbol.asyncDispose]()
    },
  }
}

const FOREVER = 60_000
const [A = '', B = '', C = '', D = ''] = [1, 2, 3, 4].map(numbered)

describe('after waking up', () => {
  it('reads what is on its way on the old connection first, and what comes on both counts once', async () => {
    await using tunnel = await afterSleep(FOREVER)
    tunnel.next.send(C, D)
    tunnel.old.send(A, B, C, D)
    await tunnel.old.closed
    await tunnel.rig.stored(4)
    expect([await tunnel.numbers(), await tunnel.duplicates()]).toEqual([[1, 2, 3, 4], 0])
  })

  it('continues with the new connection once it delivers what the old one has delivered', async () => {
    await using tunnel = await afterSleep(FOREVER)
    tunnel.old.send(A, B, C)
    await tunnel.rig.stored(3)
    tunnel.next.send(B, C, D)
    await tunnel.old.closed
    await tunnel.rig.stored(4)
    expect([await tunnel.numbers(), await tunnel.duplicates()]).toEqual([[1, 2, 3, 4], 0])
  })

  it('reads the old connection to its end', async () => {
    await using tunnel = await afterSleep(FOREVER)
    tunnel.next.send(D)
    tunnel.old.send(A, B, C)
    tunnel.old.end()
    await tunnel.rig.stored(4)
    expect(await tunnel.numbers()).toEqual([1, 2, 3, 4])
  })

  it('gives a silent connection up after some seconds', async () => {
    await using tunnel = await afterSleep(50)
    await tunnel.old.closed
    tunnel.next.send(A)
    await tunnel.rig.stored(1)
    expect(await tunnel.numbers()).toEqual([1])
  })
})

it('a network that stalls without loss delivers everything once it continues: in order, and once', async () => {
  await using smee = await startSmee({ pingEvery: 10 })
  await using wire = await startWire(smee.url)
  const limits = { silence: 300, opening: 100, linger: 2000 }
  await using rig = await startTunnel(smee.channel.replace(smee.url, wire.url), { limits })
  await rig.status({ roundTrip: 'ok' })
  const seen = rig.statuses.length
  let sent = 0
  const send = async (): Promise<unknown> => {
    const body = JSON.stringify({ n: sent++ })
    return post(smee.channel, githubDelivery({ body }))
  }
  wire.stall(true)
  for (let i = 0; i < 10; i++) await send()
  await rig.status({ state: 'waiting', why: 'no traffic for 0.3 s' }, seen)
  for (let i = 0; i < 10; i++) await send()
  // It also tries in vain to connect again.
  await rig.status({ state: 'waiting', attempt: 2 }, seen)
  for (let i = 0; i < 10; i++) await send()
  wire.stall(false)
  for (let i = 0; i < 10; i++) await send()
  await rig.stored(sent)
  const numbers = (await entriesOf(rig.journal)).map(({ body }) => JSON.parse(String(Buffer.from(body))).n)
  const duplicates = (await summariesOf(rig.journal)).map(({ duplicates }) => duplicates)
  expect(numbers).toEqual(Array.from({ length: sent }, (_, i) => i))
  expect(duplicates).toEqual(Array.from({ length: sent }, () => 0))
})
