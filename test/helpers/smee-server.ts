import type { IncomingMessage } from 'node:http'
import {
  type Listening,
  type Protocol,
  PROXIES,
  startTunnelServer,
  type TunnelServer,
  type TunnelServerOptions,
} from './tunnel-server.js'

export type SmeeServer = TunnelServer

/**
 * A server that does what smee.io does: parses a body, and writes its message from the value. It keeps nothing for those who
 * do not listen, and all for those who listen but do not read.
 * @see github.com/probot/smee.io lib/server.js and lib/keep-alive.js, commit 922d925 of 2025-12-02
 */
export function startSmee(options?: TunnelServerOptions): Promise<SmeeServer> {
  return startTunnelServer(createProtocol(), options)
}

const MIB = 1_048_576

function createProtocol(): Protocol {
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
      listening.response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' })
      write(listening, 'ready', '{}')
      return undefined
    },
    take(request, body) {
      const status = judge(request, body)
      return status === 200 ? { status, message: messageOf(request, body) } : { status }
    },
    publish(channel, message, open) {
      for (const one of open) if (one.channel === channel) write(one, '', message)
    },
    ping: (listening) => write(listening, 'ping', '{}'),
  }
}

/** What smee.io takes. */
function judge({ headers }: IncomingMessage, body: Buffer): number {
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

function messageOf({ headers, url = '' }: IncomingMessage, body: Buffer): string {
  const query = Object.fromEntries(new URL(url, 'http://smee.test').searchParams)
  const parsed: unknown = JSON.parse(body.toString())
  return JSON.stringify({ ...headers, ...PROXIES, body: parsed, query, timestamp: Date.now() })
}
