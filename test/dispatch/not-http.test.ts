import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { openHttpTarget } from '../../src/dispatch/http-target.js'
import type { DeliveryResult } from '../../src/dispatch/target.js'
import { portOf } from '../helpers/scripted-server.js'
import { entryOf } from './entry.js'

let server: Server
let sockets: Socket[]

afterEach(() => {
  for (const socket of sockets) socket.destroy()
  server.close()
})

/** Delivers to a server that does this with each connection. */
async function deliver(speak: (socket: Socket) => unknown): Promise<DeliveryResult> {
  sockets = []
  server = createServer((socket) => {
    sockets.push(socket.on('error', () => {}))
    speak(socket)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${portOf(server)}`
  await using target = openHttpTarget(url, { clock: Date.now, limit: 5000 })
  return await target.deliver(entryOf(), 1, { signal: new AbortController().signal })
}

const SSH = 'SSH-2.0-OpenSSH_9.2\r\n'
const MAIL = '220 mail.example ESMTP\r\n'
const TLS_ALERT = '\x15\x03\x01\0\x02\x02\x46'
const PROTOCOL = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n'

describe('a target that does not answer in HTTP', () => {
  it.each<[string, (socket: Socket) => unknown, string]>([
    ['an SSH server, which speaks first', (socket) => socket.end(SSH), SSH],
    ['a mail server, which waits for more', (socket) => socket.write(MAIL), MAIL],
    ['a server that wants TLS', (socket) => socket.once('data', () => socket.end(TLS_ALERT)), TLS_ALERT],
    ['a server that changes the protocol', (socket) => socket.once('data', () => socket.write(PROTOCOL)), ''],
    [
      'a server whose headers are too long',
      (socket) => socket.once('data', () => socket.write(`HTTP/1.1 200 OK\r\nX: ${'x'.repeat(20_000)}`)),
      '',
    ],
  ])('has answered, and is not asked again: %s', async (_, speak, said) => {
    const { answer, ...result } = await deliver(speak)
    expect({ ...result, answer: Buffer.from(answer).toString(), connections: sockets.length }).toEqual({
      outcome: 'refused',
      status: null,
      error: 'its answer is not HTTP/1.1: check the address and the port',
      answer: said,
      connections: 1,
    })
  })
})
