import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { portOf } from './scripted-server.js'

/** A TCP proxy on 127.0.0.1 that can behave like a network that swallows packets. */
export interface StallingProxy extends AsyncDisposable {
  readonly port: number
  /** From now on nothing gets through, in either direction, also on new connections. No connection is closed. */
  stall(): void
  /** What was held back gets through. */
  resume(): void
  /** What is connected now never gets anything through again, and is not closed; new connections work. */
  forget(): void
}

/** A proxy to a port of 127.0.0.1. */
export async function startStallingProxy(target: number): Promise<StallingProxy> {
  const sockets = new Set<Socket>()
  const forgotten = new Set<Socket>()
  let stalled = false
  const link = (from: Socket, to: Socket): void => {
    sockets.add(from)
    if (stalled) from.pause()
    from.on('data', (bytes) => void to.write(bytes))
    from.on('error', () => {})
    from.on('close', () => {
      sockets.delete(from)
      to.destroy()
    })
  }
  const server = createServer((near) => {
    const far = connect(target, '127.0.0.1')
    link(near, far)
    link(far, near)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: portOf(server),
    stall() {
      stalled = true
      for (const socket of sockets) socket.pause()
    },
    resume() {
      stalled = false
      for (const socket of sockets) socket.resume()
    },
    forget() {
      for (const socket of sockets) forgotten.add(socket.pause())
      sockets.clear()
    },
    async [Symbol.asyncDispose]() {
      server.close()
      for (const socket of [...sockets, ...forgotten]) socket.destroy()
    },
  }
}
