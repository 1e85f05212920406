import { createServer, type IncomingMessage, type OutgoingHttpHeaders, type ServerResponse } from 'node:http'
import { Changes } from './changes.js'
import type { Header } from './delivery.js'
import { bodyOf, listening } from './ports.js'

/** A request as it reached the receiver, once it was read whole. */
export interface Received {
  readonly method: string
  /** With its query. */
  readonly path: string
  /** As they were written: order, spelling, repetitions. */
  readonly headers: readonly Header[]
  readonly body: Buffer
  /** When it was read whole, by `performance.now()`. */
  readonly at: number
}

export interface FullReply {
  /** Default: 200. */
  readonly status?: number
  readonly headers?: OutgoingHttpHeaders
  /** An object is sent as JSON. */
  readonly body?: string | Uint8Array | object
  /** Nothing more comes after the body, which has no end. */
  readonly stalls?: boolean
}

/** A status, more than that, or: never answer; cut the connection. */
export type Reply = number | FullReply | 'hang' | 'reset'

export type Answering = Reply | ((request: Received) => Reply | Promise<Reply>)

/** An HTTP server on 127.0.0.1 that keeps exactly what it was sent. */
export type Receiver = Awaited<ReturnType<typeof receiver>>

/**
 * Starts a receiver that answers 200, or as it is told, by default on a port that nobody else gets while it is down. Disposing of it
 * throws what its `answer` threw.
 */
export async function receiver(answer: Answering = 200, { port }: { readonly port?: number } = {}) {
  const received: Received[] = []
  const script: Answering[] = []
  const changes = new Changes(() => seen(received))
  const failures: unknown[] = []
  const serve = async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
    const request = await take(incoming)
    received.push(request)
    changes.changed()
    const says = script.shift() ?? answer
    try {
      reply(incoming, outgoing, typeof says === 'function' ? await says(request) : says)
    } catch (error) {
      failures.push(error)
      incoming.socket.resetAndDestroy()
    }
  }
  const server = createServer((incoming, outgoing) => void serve(incoming, outgoing))
  const place = await listening(server, port)
  return {
    ...place,
    url: `http://127.0.0.1:${place.port}`,
    /** Every request that reached it, in order. */
    received: received as readonly Received[],
    /** What it answers next, in turn; when nothing is left, as it was told at first. */
    answers: (...next: Answering[]) => void script.push(...next),
    /** Once it has received this many in all. @throws Error with what it has received, after 20 seconds. */
    has: (count: number, within?: number) =>
      changes.until(() => received.length >= count, `${count} requests`, within),
    async [Symbol.asyncDispose]() {
      await place.down()
      if (failures.length > 0) throw failures[0]
    },
  }
}

/** The values of a header, in order. */
export function valuesOf({ headers }: { readonly headers: readonly Header[] }, name: string): string[] {
  return headers.filter(([each]) => each.toLowerCase() === name.toLowerCase()).map(([, value]) => value)
}

function seen(received: readonly Received[]): string {
  const lines = received.map(
    ({ method, path, body }) => `\n${method} ${path} ${body.toString('utf8', 0, 200)}`,
  )
  return `${received.length}${lines.join('')}`
}

async function take(incoming: IncomingMessage): Promise<Received> {
  const body = await bodyOf(incoming)
  const { method = '', url = '', rawHeaders } = incoming
  const headers = rawHeaders.flatMap((name, i): Header[] =>
    i % 2 === 0 ? [[name, rawHeaders[i + 1] ?? '']] : [],
  )
  return { method, path: url, headers, body, at: performance.now() }
}

function reply(incoming: IncomingMessage, outgoing: ServerResponse, answer: Reply): void {
  if (answer === 'hang') return
  if (answer === 'reset') return void incoming.socket.resetAndDestroy()
  const {
    status = 200,
    headers = {},
    body = '',
    stalls,
  }: FullReply = typeof answer === 'number' ? { status: answer } : answer
  const bytes = typeof body === 'string' || body instanceof Uint8Array
  const all = { ...(!bytes && { 'content-type': 'application/json' }), ...headers }
  outgoing.on('error', () => {}).writeHead(status, all)
  outgoing.write(bytes ? body : JSON.stringify(body))
  if (!stalls) outgoing.end()
}
