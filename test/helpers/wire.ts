import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { portOf } from './scripted-server.js'

/** The network between a client and a server on 127.0.0.1. */
export interface Wire extends AsyncDisposable {
  readonly url: string
  /** From now on it passes nothing on, and loses nothing; or goes on. */
  stall(yes: boolean): void
}

export async function startWire(to: string): Promise<Wire> {
  const sockets = new Set<Socket>()
  let goesOn = Promise.resolve()
  let goOn = (): void => {}
  const forward = async (from: Socket, onward: Socket): Promise<void> => {
    try {
      for await (const chunk of from) {
        await goesOn
        if (!onward.write(chunk)) await once(onward, 'drain')
      }
    } catch {
      // One end has closed the connection.
    }
    from.destroy()
    onward.destroy()
  }
  const server = createServer((near) => {
    const far = connect(Number(new URL(to).port), '127.0.0.1')
    for (const socket of [near, far]) {
      sockets.add(socket)
      socket.on('error', () => {}).on('close', () => sockets.delete(socket))
    }
    void forward(near, far)
    void forward(far, near)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${portOf(server)}`,
    stall(yes) {
      goOn()
      if (yes) goesOn = new Promise((resolve) => (goOn = resolve))
    },
    async [Symbol.asyncDispose]() {
      goOn()
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}
