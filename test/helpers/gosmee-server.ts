import type { IncomingMessage } from 'node:http'
import {
  type Listening,
  type Protocol,
  PROXIES,
  startTunnelServer,
  type TunnelServer,
  type TunnelServerOptions,
} from './tunnel-server.js'

export interface GosmeeOptions extends TunnelServerOptions {
  /** Messages that the server keeps in a stream of Redis. Default: it has no Redis and keeps nothing. */
  readonly stream?: number
}

/**
 * A server that does what gosmee's does: sends the exact bytes of a body in base64. Without Redis it drops what a slow
 * listener does not read, beyond 100 messages; with Redis it continues after `Last-Event-ID`.
 * @see github.com/chmouel/gosmee gosmee/server.go and gosmee/server_relay.go, v0.32.0
 */
export function startGosmee({ stream, ...options }: GosmeeOptions = {}): Promise<TunnelServer> {
  return startTunnelServer(createProtocol(stream), options)
}

interface Stored {
  readonly id: string
  readonly channel: string
  readonly message: string
}

/** Messages that wait for a listener. */
const MAX_PENDING = 100
const VERSION = { 'x-gosmee-version': 'v0.32.0' }
const CONNECTED = 'data: {"message":"connected"}\n\ndata: {"message":"ready"}\n\n'

function createProtocol(maxStored: number | undefined): Protocol {
  const stored: Stored[] = []
  const pending = new WeakMap<Listening['response'], string[]>()
  let sequence = 0
  const write = ({ response }: Listening, id: string, message: string): void => {
    const event = `${id === '' ? '' : `id: ${id}\n`}data: ${message}\n\n`
    const waiting = pending.get(response)
    if (!waiting || maxStored !== undefined) response.write(event)
    else if (waiting.length < MAX_PENDING) {
      waiting.push(event)
      flush(response, waiting)
    }
  }
  return {
    create: (method, address) =>
      method === 'GET'
        ? { status: 200, headers: { 'content-type': 'text/plain' }, body: `${address}\n` }
        : { status: 405 },
    channelOf: ({ url = '' }) => /^\/events\/([\w-]{12,64})$/.exec(url)?.[1],
    listen({ headers }, listening) {
      const { channel, response } = listening
      const after = headers['last-event-id']
      if (maxStored !== undefined && after !== undefined && !/^\d+-\d+$/.test(String(after)))
        return { status: 400, body: 'invalid Last-Event-ID\n' }
      response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' })
      response.write(CONNECTED)
      pending.set(response, [])
      response.on('drain', () => flush(response, pending.get(response) ?? []))
      if (maxStored === undefined || after === undefined) return undefined
      const [oldest] = stored
      if (oldest && isBefore(String(after), oldest.id))
        response.write(
          `event: gosmee-gap\ndata: ${JSON.stringify({ error: 'missed_history', requested_id: after, oldest_id: oldest.id })}\n\n`,
        )
      for (const one of stored)
        if (one.channel === channel && isBefore(String(after), one.id)) write(listening, one.id, one.message)
      return undefined
    },
    take(request, body) {
      const type = request.headers['content-type'] ?? ''
      if (!type.includes('application/json'))
        return { status: 400, body: 'content-type must be application/json\n' }
      try {
        JSON.parse(body.toString())
      } catch (error) {
        return { status: 400, body: String(error) }
      }
      return {
        status: 202,
        headers: VERSION,
        body: '{"message":"ok","status":202}\n',
        message: messageOf(request, body),
      }
    },
    publish(channel, message, open) {
      const id = maxStored === undefined ? '' : `${Date.now()}-${sequence++}`
      if (maxStored !== undefined) {
        stored.push({ id, channel, message })
        if (stored.length > maxStored) stored.shift()
      }
      for (const one of open) if (one.channel === channel) write(one, id, message)
    },
    ping: ({ response }) => void response.write(': keepalive\n\n'),
  }
}

/** Writes what waits, as far as the listener reads. */
function flush(response: Listening['response'], waiting: string[]): void {
  while (waiting.length > 0 && !response.writableNeedDrain) response.write(waiting.shift())
}

function isBefore(a: string, b: string): boolean {
  const [time = 0, sequence = 0] = a.split('-').map(Number)
  const [otherTime = 0, otherSequence = 0] = b.split('-').map(Number)
  return time < otherTime || (time === otherTime && sequence < otherSequence)
}

/** Go sorts the members. */
function messageOf({ headers }: IncomingMessage, body: Buffer): string {
  const { host: _, ...sent } = headers
  const members = { ...sent, ...PROXIES, bodyB: body.toString('base64'), timestamp: String(Date.now()) }
  return JSON.stringify(Object.fromEntries(Object.entries(members).toSorted(([a], [b]) => (a < b ? -1 : 1))))
}
