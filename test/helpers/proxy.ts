import { once } from 'node:events'
import { createServer } from 'node:http'
import { connect } from 'node:net'
import { portOf } from './scripted-server.js'

export interface Proxy extends AsyncDisposable {
  readonly url: string
  /** Where each CONNECT that was let through was meant to go. */
  readonly asked: readonly string[]
}

/** A proxy on 127.0.0.1 that takes every CONNECT to one server, wherever it was meant to go; refuses it with 407 unless `isOpen`. */
export async function startProxy(target: () => string, isOpen = (): boolean => true): Promise<Proxy> {
  const asked: string[] = []
  const server = createServer().on('connect', ({ url = '' }, socket) => {
    socket.on('error', () => {})
    if (!isOpen()) {
      socket.end('HTTP/1.1 407 Proxy Authentication Required\r\n\r\n')
      return
    }
    asked.push(url)
    const { hostname, port } = new URL(target())
    const onward = connect(Number(port), hostname, () => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n')
      socket.pipe(onward).pipe(socket)
    })
    socket.on('close', () => onward.destroy())
    onward.on('error', () => socket.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${portOf(server)}`,
    asked,
    async [Symbol.asyncDispose]() {
      server.close()
      server.closeAllConnections()
    },
  }
}
