import type { IncomingMessage } from 'node:http'
import {
  type Listening,
  type Protocol,
  PROXIES,
  tunnelServer,
  type TunnelServer,
  type TunnelServerOptions,
} from './tunnel-server.js'

export type { TunnelServer } from './tunnel-server.js'

/**
 * A server that does what smee.io does: parses a body, and writes its message from the value. It keeps nothing for those who
 * do not listen, and all for those who listen but do not read.
 *
 * @see github.com/probot/smee.io lib/server.js and lib/keep-alive.js, commit 922d925 of 2025-12-02
 */
export function smee(options?: TunnelServerOptions): Promise<TunnelServer> {
  return tunnelServer(smeeProtocol(), options)
}

export interface GosmeeOptions extends TunnelServerOptions {
  /** Messages that the server keeps in a stream of Redis. Default: it has no Redis and keeps nothing. */
  readonly stream?: number
}

/**
 * A server that does what gosmee's does: sends the exact bytes of a body in base64. With Redis it continues after
 * `Last-Event-ID`, without it drops what comes for a listener that is {@link PENDING} behind.
 *
 * @see github.com/chmouel/gosmee gosmee/server.go and gosmee/server_relay.go, v0.32.0
 */
export function gosmee({ stream, ...options }: GosmeeOptions = {}): Promise<TunnelServer> {
  return tunnelServer(gosmeeProtocol(stream), options)
}

const MIB = 1_048_576
const EVENTS = { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' }

function smeeProtocol(): Protocol {
  /** Each connection numbers its events from 0. */
  const counts = new WeakMap<Listening['response'], number>()
  const write = ({ response }: Listening, event: string, data: string): void => {
    const id = counts.get(response) ?? 0
    counts.set(response, id + 1)
    response.write(`id: ${id}\n${event === '' ? '' : `event: ${event}\n`}data: ${data}\n\n`)
  }
  return {
    create: (_, address) => ({ status: 307, headers: { location: address } }),
    channelOf: ({ headers, url = '' }) =>
      headers.accept === 'text/event-stream' ? /^\/([\w-]{1,128})$/.exec(url)?.[1] : undefined,
    listen(_, listening) {
      listening.response.writeHead(200, EVENTS)
      write(listening, 'ready', '{}')
      return undefined
    },
    take(request, body) {
      const status = smeeStatus(request, body)
      return status === 200 ? { status, message: smeeMessage(request, body) } : { status }
    },
    publish(channel, message, open) {
      for (const one of open) if (one.channel === channel) write(one, '', message)
    },
    ping: (listening) => write(listening, 'ping', '{}'),
  }
}

/** What smee.io answers to a delivery. */
function smeeStatus({ headers }: IncomingMessage, body: Buffer): number {
  if (!/^application\/json\b/.test(headers['content-type'] ?? '')) return 415
  if (body.length > MIB) return 413
  const delivery = headers['x-github-delivery']
  if (delivery !== undefined && !/^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i.test(String(delivery)))
    return 400
  const signature = headers['x-hub-signature-256']
  if (signature !== undefined && !/^sha256=[\da-f]{64}$/.test(String(signature))) return 400
  if (/"__proto__"\s*:/.test(body.toString())) return 400
  try {
    const value: unknown = JSON.parse(body.toString())
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? 200 : 400
  } catch {
    return 400
  }
}

function smeeMessage({ headers, url = '' }: IncomingMessage, body: Buffer): string {
  const { searchParams } = new URL(url, 'http://smee.test')
  // As Express parses it: a list for a name that is there several times.
  const values = [...new Set(searchParams.keys())].map((name) => [name, searchParams.getAll(name)] as const)
  const query = Object.fromEntries(values.map(([name, all]) => [name, all.length === 1 ? all[0] : all]))
  const parsed: unknown = JSON.parse(body.toString())
  return JSON.stringify({ ...headers, ...PROXIES, body: parsed, query, timestamp: Date.now() })
}

interface Stored {
  readonly id: string
  readonly channel: string
  readonly message: string
}

/** Messages that wait for a listener that does not read: the buffer of Go's channel for it. */
const PENDING = 100
const VERSION = { 'x-gosmee-version': 'v0.32.0' }
const CONNECTED = 'data: {"message":"connected"}\n\ndata: {"message":"ready"}\n\n'

function gosmeeProtocol(maxStored: number | undefined): Protocol {
  const stored: Stored[] = []
  let sequence = 0
  const write = ({ response }: Listening, id: string, message: string): void => {
    response.write(`${id === '' ? '' : `id: ${id}\n`}data: ${message}\n\n`)
  }
  const behind = new WeakMap<Listening, string[]>()
  const send = (listening: Listening, message: string): void => {
    const { response } = listening
    if (!response.writableNeedDrain) return write(listening, '', message)
    const waiting = behind.get(listening) ?? []
    if (!behind.has(listening))
      response.on('drain', () => {
        while (waiting.length > 0 && !response.writableNeedDrain) write(listening, '', waiting.shift() ?? '')
      })
    behind.set(listening, waiting)
    if (waiting.length < PENDING) waiting.push(message)
  }
  return {
    // With the address that it has for itself.
    create: (method, address) =>
      method === 'GET'
        ? {
            status: 200,
            headers: { 'content-type': 'text/plain' },
            body: `http://localhost:3333${new URL(address).pathname}\n`,
          }
        : { status: 405 },
    channelOf: ({ url = '' }) => /^\/events\/([\w-]{12,64})$/.exec(url)?.[1],
    listen({ headers }, listening) {
      const { channel, response } = listening
      const after = headers['last-event-id']
      if (maxStored !== undefined && after !== undefined && !/^\d+-\d+$/.test(String(after)))
        return { status: 400, body: 'invalid Last-Event-ID\n' }
      response.writeHead(200, EVENTS)
      response.write(CONNECTED)
      if (maxStored === undefined || after === undefined) return undefined
      const [oldest] = stored
      if (oldest && isBefore(String(after), oldest.id)) {
        const gap = { error: 'missed_history', requested_id: after, oldest_id: oldest.id }
        response.write(`event: gosmee-gap\ndata: ${JSON.stringify(gap)}\n\n`)
      }
      for (const one of stored)
        if (one.channel === channel && isBefore(String(after), one.id)) write(listening, one.id, one.message)
      return undefined
    },
    take(request, body) {
      if (!(request.headers['content-type'] ?? '').includes('application/json'))
        return { status: 400, body: 'content-type must be application/json\n' }
      const answer = { status: 202, headers: VERSION, body: '{"message":"ok","status":202}\n' }
      return { ...answer, message: gosmeeMessage(request, body) }
    },
    publish(channel, message, open) {
      const listeners = [...open].filter((one) => one.channel === channel)
      if (maxStored === undefined) return listeners.forEach((one) => send(one, message))
      const id = `${Date.now()}-${sequence++}`
      stored.push({ id, channel, message })
      if (stored.length > maxStored) stored.shift()
      for (const one of listeners) write(one, id, message)
    },
    ping: ({ response }) => void response.write(': keepalive\n\n'),
  }
}

function isBefore(a: string, b: string): boolean {
  const [time = 0, sequence = 0] = a.split('-').map(Number)
  const [otherTime = 0, otherSequence = 0] = b.split('-').map(Number)
  return time < otherTime || (time === otherTime && sequence < otherSequence)
}

/** Go sorts the members. */
function gosmeeMessage({ headers }: IncomingMessage, body: Buffer): string {
  const { host: _, ...sent } = headers
  const members = { ...sent, ...PROXIES, bodyB: body.toString('base64'), timestamp: String(Date.now()) }
  return JSON.stringify(Object.fromEntries(Object.entries(members).toSorted(([a], [b]) => (a < b ? -1 : 1))))
}
