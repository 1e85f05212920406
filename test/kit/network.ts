import { once } from 'node:events'
import { createServer as createHttpServer, request as requestHttp } from 'node:http'
import { connect, createServer, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { portOf } from './ports.js'

/**
 * The network between clients and a port of 127.0.0.1, which can swallow what passes. It reads no faster than what it has read is
 * taken from it.
 */
export async function stalling(target: number) {
  const links: Link[] = []
  let isStalled = false
  let rate: number | undefined
  let count = 0
  const proxy = await proxyTo(target, (near, far) => {
    const link = new Link(near, far)
    links.push(link)
    count++
    if (rate !== undefined) link.slowDown(rate)
    else if (!isStalled) link.goOn()
  })
  return Object.assign(proxy, {
    /** Connections so far. */
    count: () => count,
    /** From now on nothing gets through, in either direction, also on new connections. No connection is closed. */
    stall(): void {
      isStalled = true
      for (const link of links) link.hold()
    },
    /** What was held back gets through: all of it, in order. */
    resume(): void {
      isStalled = false
      rate = undefined
      for (const link of links) link.goOn()
    },
    /** What is connected now never gets anything through again, and is not closed. New connections work. */
    forget(): void {
      for (const link of links.splice(0)) link.hold()
    },
    /** What is connected now is closed, as by a router that restarts. New connections work. */
    cut(): void {
      for (const link of links.splice(0)) link.cut()
    },
    /** From now on, so many bytes a second get through each connection in each direction, until `resume`. */
    slowDown(bytes: number): void {
      rate = bytes
      for (const link of links) link.slowDown(bytes)
    },
  })
}

/** A connection, and the one that it leads to. Held, neither bytes nor an end get through. */
class Link {
  readonly #sockets: readonly [Socket, Socket]
  #isHeld = true
  #isBroken = false
  #timer: NodeJS.Timeout | undefined

  constructor(...sockets: readonly [Socket, Socket]) {
    this.#sockets = sockets
    for (const socket of sockets)
      socket.on('close', (hadError) => {
        if (!hadError) return
        this.#isBroken = true
        if (!this.#isHeld) this.cut()
      })
  }

  hold(): void {
    const [near, far] = this.#sockets
    this.#isHeld = true
    clearInterval(this.#timer)
    near.unpipe(far)
    far.unpipe(near)
  }

  goOn(): void {
    if (!this.#isHeld) return
    const [near, far] = this.#sockets
    this.#isHeld = false
    clearInterval(this.#timer)
    if (this.#isBroken) return this.cut()
    near.pipe(far).pipe(near)
  }

  slowDown(rate: number): void {
    const [near, far] = this.#sockets
    this.hold()
    if (this.#isBroken) return this.cut()
    const ways = [
      { from: near, to: far, room: 0 },
      { from: far, to: near, room: 0 },
    ]
    const pass = (): void => {
      for (const way of ways) {
        const { from, to } = way
        // What nobody used does not add up.
        way.room = Math.min(rate, way.room + rate / 20)
        const chunk: Buffer | null = from.read(Math.min(Math.floor(way.room), from.readableLength))
        way.room -= chunk?.length ?? 0
        if (chunk) to.write(chunk)
        if (from.readableEnded && !to.writableEnded) to.end()
      }
      if (this.#isBroken) this.cut()
    }
    this.#timer = setInterval(pass, 50).unref()
  }

  cut(): void {
    clearInterval(this.#timer)
    for (const socket of this.#sockets) socket.destroy()
  }
}

/** A TCP proxy to a port of 127.0.0.1 that brings each answer so many milliseconds late, as a server in another place does. */
export function distant(target: number, ms: number): Promise<AsyncDisposable & { readonly port: number }> {
  return proxyTo(target, (near, far) => {
    near.pipe(far)
    // Timers of one length end in the order in which they began.
    far.on('data', (chunk) => setTimeout(() => near.write(chunk), ms))
    far.on('end', () => setTimeout(() => near.end(), ms))
  })
}

/** Has `join` connect each connection with one to a port of 127.0.0.1. */
async function proxyTo(
  target: number,
  join: (near: Socket, far: Socket) => void,
): Promise<AsyncDisposable & { readonly port: number }> {
  const sockets = new Set<Socket>()
  const server = createServer({ allowHalfOpen: true }, (near) => {
    const far = connect({ port: target, host: '127.0.0.1', allowHalfOpen: true })
    for (const socket of [near, far]) {
      sockets.add(socket)
      // A network holds nothing back until it has more.
      socket.setNoDelay(true)
      socket.on('error', () => {}).on('close', () => sockets.delete(socket))
    }
    join(near, far)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: portOf(server),
    async [Symbol.asyncDispose]() {
      server.close()
      for (const socket of sockets) socket.destroy()
      await once(server, 'close')
    },
  }
}

/**
 * A proxy on 127.0.0.1 that brings all to one server, wherever it was meant to go. As Squid in its usual settings, it connects for https alone
 * (`http_access deny CONNECT !SSL_ports` in its squid.conf), and reads requests with a whole address.
 */
export async function connectProxy(target: () => string) {
  const asked: string[] = []
  const connections = new Set<Duplex>()
  const server = createHttpServer((request, response) => {
    const { method, url = '', rawHeaders: headers } = request
    asked.push(url)
    if (!url.startsWith('http://')) {
      response.writeHead(400).end()
      return
    }
    const { pathname, search } = new URL(url)
    const onward = requestHttp(new URL(pathname + search, target()), { method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.rawHeaders)
      answer.pipe(response)
    })
    onward.on('error', () => response.destroy())
    request.pipe(onward)
  }).on('connect', ({ url = '' }, socket) => {
    socket.on('error', () => {})
    asked.push(url)
    if (url.endsWith(':80')) {
      socket.end('HTTP/1.1 403 Forbidden\r\n\r\n')
      return
    }
    const { hostname, port } = new URL(target())
    const onward = connect(Number(port), hostname, () => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n')
      socket.pipe(onward).pipe(socket)
    })
    connections.add(socket)
    socket.on('close', () => {
      connections.delete(socket)
      onward.destroy()
    })
    onward.on('error', () => {}).on('close', () => socket.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${portOf(server)}`,
    /** Where each CONNECT, and each request, was meant to go. */
    asked,
    async [Symbol.asyncDispose]() {
      server.close()
      server.closeAllConnections()
      for (const connection of connections) connection.destroy()
      await once(server, 'close')
    },
  }
}
