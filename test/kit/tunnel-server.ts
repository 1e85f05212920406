import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { Changes } from './changes.js'
import { bodyOf, listening } from './ports.js'

export interface TunnelServerOptions {
  /** Milliseconds between two pings. Default: 30 s. */
  readonly pingEvery?: number
  /** Makes it an https server. */
  readonly certificate?: { readonly key: string; readonly cert: string }
}

/** A server on 127.0.0.1 that passes webhook requests to those who listen on their channel. */
export type TunnelServer = Awaited<ReturnType<typeof tunnelServer>>

/** An open connection for events. */
export interface Listening {
  readonly channel: string
  readonly response: ServerResponse
}

/** What a kind of server does in its own way. */
export interface Protocol {
  /** Answers a request for a channel, which gets this address. */
  create(method: string, address: string): Reply
  /** The channel whose events are requested; undefined for other requests. */
  channelOf(request: IncomingMessage): string | undefined
  /** Begins the answer with events, or refuses. */
  listen(request: IncomingMessage, listening: Listening): Reply | undefined
  /** Takes a delivery. */
  take(request: IncomingMessage, body: Buffer): Taken
  /** Sends a message to the listeners of a channel. */
  publish(channel: string, message: string, open: Iterable<Listening>): void
  ping(listening: Listening): void
}

export interface Reply {
  readonly status: number
  readonly headers?: Record<string, string>
  readonly body?: string
}

export interface Taken extends Reply {
  /** What listeners get; undefined if the delivery is refused. */
  readonly message?: string
}

/** What the proxies before a server add. */
export const PROXIES = {
  'x-forwarded-for': '140.82.115.1',
  'x-forwarded-proto': 'https',
  'x-forwarded-port': '443',
  'x-request-id': '3e1f',
  via: '1.1 vegur',
  'cf-ray': '8f00-FRA',
}

/** What both kinds of servers have in common, and what a test does to them. */
export async function tunnelServer(
  protocol: Protocol,
  { pingEvery = 30_000, certificate }: TunnelServerOptions = {},
) {
  const open = new Set<Listening>()
  const streams: ServerResponse[] = []
  const changes = new Changes(() => `${open.size} of ${streams.length} connections open`)
  let refusedPosts: Reply | undefined
  const listen = (request: IncomingMessage, response: ServerResponse, channel: string): void => {
    const listening = { channel, response }
    const refused = protocol.listen(request, listening)
    if (refused) return end(response, refused)
    streams.push(response)
    open.add(listening)
    response.on('close', () => open.delete(listening))
    changes.changed()
  }
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = await bodyOf(request)
    const { method = '', url = '', headers } = request
    if (url === '/new')
      return end(response, protocol.create(method, `http://${headers.host}/${newChannel()}`))
    const events = method === 'GET' ? protocol.channelOf(request) : undefined
    if (events !== undefined) return listen(request, response, events)
    if (!/^\/[\w-]{1,128}(?:\?|$)/.test(url)) return end(response, { status: 404 })
    if (method !== 'POST') return end(response, { status: 200, headers: { 'content-type': 'text/html' } })
    const { message, ...reply }: Taken = refusedPosts ?? protocol.take(request, body)
    if (message !== undefined) protocol.publish(url.slice(1).split('?')[0] ?? '', message, open)
    return end(response, reply)
  }
  const listener: RequestListener = (request, response) => void serve(request, response)
  const server = certificate ? createTlsServer(certificate, listener) : createServer(listener)
  const pinging = setInterval(() => {
    for (const one of open) protocol.ping(one)
  }, pingEvery)
  const place = await listening(server)
  const url = `${certificate ? 'https' : 'http'}://127.0.0.1:${place.port}`
  return {
    ...place,
    url,
    /** A channel of its own. */
    channel: `${url}/${newChannel()}`,
    /** The connection for events with this index, counted from the first, once it is made. */
    async stream(index: number) {
      await changes.until(() => streams.length > index, `connection ${index}`)
      const stream = streams[index]
      if (!stream) throw new Error('unreachable')
      return {
        closed: stream.closed ? Promise.resolve() : once(stream, 'close'),
        /** Writes to this connection alone, as it is. */
        write: (text: string) => void stream.write(text),
        end: () => void stream.end(),
      }
    },
    /** Writes to every open connection, as it is. */
    write: (text: string): void => {
      for (const { response } of open) response.write(text)
    },
    /** Sends a message to every open connection. */
    message: (data: unknown): void => {
      for (const one of open) protocol.publish(one.channel, JSON.stringify(data), [one])
    },
    /** Ends every open connection. */
    hangUp: (): void => {
      for (const { response } of open) response.end()
    },
    /** Bytes of events that it holds because they are not read. */
    unsent: () => [...open].reduce((sum, { response }) => sum + response.writableLength, 0),
    /** From now on it answers with this to deliveries, and sends none on. */
    refusePosts: (status: number) => void (refusedPosts = { status }),
    async [Symbol.asyncDispose]() {
      clearInterval(pinging)
      await place.down()
    },
  }
}

function newChannel(): string {
  return randomBytes(12).toString('base64url')
}

function end(response: ServerResponse, { status, headers = {}, body }: Reply): void {
  response.writeHead(status, headers).end(body)
}
