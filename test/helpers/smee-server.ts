import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { Certificate } from './certificate.js'
import { portOf } from './scripted-server.js'

export interface SmeeServerOptions {
  /** Milliseconds between two pings. Default: 30 s. */
  readonly pingEvery?: number
  /** Sends the bytes of a body, in base64, and not what it makes of them; as gosmee does. */
  readonly raw?: boolean
  /** Makes it an https server. */
  readonly certificate?: Certificate
}

/** A server on 127.0.0.1 that speaks smee's protocol, and does to a body what smee.io does. */
export interface SmeeServer extends AsyncDisposable {
  readonly url: string
  /** A channel of its own. */
  readonly channel: string
  /** How many connections for events there have been. */
  readonly connections: number
  /** Once this many connections for events are open. */
  listening(count: number): Promise<void>
  /** Writes to every open connection, as it is. */
  write(text: string): void
  /** Sends a message to every open connection. */
  message(data: unknown): void
  /** From now on no ping is sent, and connections stay open. */
  fallSilent(): void
  /** Ends every open connection. */
  hangUp(): void
  /** Once it has sent this many pings. */
  pinged(count: number): Promise<void>
  /** From now on it answers nobody, or everybody again. */
  stall(yes: boolean): void
  /** From now on it answers with this, to all; with undefined, as it should. */
  refuse(status: number | undefined): void
  /** From now on it answers with this to deliveries, and sends none on. */
  refusePosts(status: number): void
  /** Nothing listens on its port until `up`. */
  down(): Promise<void>
  up(): Promise<void>
}

const MIB = 1_048_576
/** What the proxies before smee.io add. */
const PROXIES = {
  'x-forwarded-for': '140.82.115.1',
  'x-forwarded-proto': 'https',
  'x-forwarded-port': '443',
  'x-request-id': '3e1f',
  via: '1.1 vegur',
  'cf-ray': '8f00-FRA',
}

export async function startSmee({
  pingEvery = 30_000,
  raw = false,
  certificate,
}: SmeeServerOptions = {}): Promise<SmeeServer> {
  const open = new Set<ServerResponse>()
  const waiting = new Set<() => void>()
  let connections = 0
  let refusal: number | undefined
  let refusedPosts: number | undefined
  let stalls = false
  let pings = 0
  let id = 0
  const event = (name: string, data: string): void => {
    for (const stream of open)
      stream.write(`id: ${id++}\n${name === '' ? '' : `event: ${name}\n`}data: ${data}\n\n`)
  }
  const changed = (): void => {
    for (const look of waiting) look()
  }
  const until = async (isSo: () => boolean): Promise<void> => {
    while (!isSo())
      await new Promise<void>((resolve) => {
        const look = (): void => {
          waiting.delete(look)
          resolve()
        }
        waiting.add(look)
      })
  }
  const listen = (response: ServerResponse): void => {
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' })
    response.write(`id: ${id++}\nevent: ready\ndata: {}\n\n`)
    connections++
    open.add(response)
    response.on('close', () => {
      open.delete(response)
      changed()
    })
    changed()
  }
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = await read(request)
    const { method = '', url = '' } = request
    if (stalls) return
    if (refusal !== undefined) return end(response, refusal)
    if (url === '/new')
      return method === (raw ? 'GET' : 'HEAD')
        ? end(response, 307, { location: `http://${request.headers.host}/${newChannel()}` })
        : end(response, 405)
    if (method === 'GET' && wantsEvents(request, raw)) return listen(response)
    if (!/^\/[\w-]{1,128}(?:\?|$)/.test(url)) return end(response, 404)
    if (method !== 'POST') return end(response, 200, { 'content-type': 'text/html' })
    const status = refusedPosts ?? (raw ? 202 : judge(request, body))
    if (status < 300)
      event('', JSON.stringify(raw ? rawMessage(request, body) : parsedMessage(request, body)))
    return end(response, status)
  }
  const listener: RequestListener = (request, response) => void serve(request, response)
  const server = certificate ? createTlsServer(certificate, listener) : createServer(listener)
  const pinging = setInterval(() => {
    event('ping', '{}')
    pings++
    changed()
  }, pingEvery)
  const up = async (port: number): Promise<number> => {
    server.listen(port, '127.0.0.1')
    await once(server, 'listening')
    return portOf(server)
  }
  const down = async (): Promise<void> => {
    if (!server.listening) return
    server.close()
    server.closeAllConnections()
    await once(server, 'close')
  }
  const port = await up(0)
  const url = `${certificate ? 'https' : 'http'}://127.0.0.1:${port}`
  return {
    url,
    channel: `${url}/${newChannel()}`,
    get connections() {
      return connections
    },
    listening: (count) => until(() => open.size >= count),
    pinged: (count) => until(() => pings >= count),
    stall: (yes) => void (stalls = yes),
    write: (text) => {
      for (const stream of open) stream.write(text)
    },
    message: (data) => event('', JSON.stringify(data)),
    fallSilent: () => clearInterval(pinging),
    hangUp: () => {
      for (const stream of open) stream.end()
    },
    refusePosts: (status) => void (refusedPosts = status),
    refuse: (status) => void (refusal = status),
    down,
    up: async () => void (await up(port)),
    async [Symbol.asyncDispose]() {
      clearInterval(pinging)
      await down()
    },
  }
}

/** smee.io goes by what a client accepts, gosmee by the path: it has a page where the channel is. */
function wantsEvents({ headers, url = '' }: IncomingMessage, raw: boolean): boolean {
  if (raw) return /^\/events\/[\w-]{12,64}$/.test(url)
  return /^\/[\w-]{1,128}$/.test(url) && headers.accept === 'text/event-stream'
}

function newChannel(): string {
  return randomBytes(12).toString('base64url')
}

async function read(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  try {
    for await (const chunk of request) chunks.push(chunk)
  } catch {
    // Cut off: what has come is what there is.
  }
  return Buffer.concat(chunks)
}

function end(response: ServerResponse, status: number, headers: Record<string, string> = {}): void {
  response.writeHead(status, headers).end()
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

function parsedMessage({ headers, url = '' }: IncomingMessage, body: Buffer): unknown {
  const query = Object.fromEntries(new URL(url, 'http://smee.test').searchParams)
  const parsed: unknown = JSON.parse(body.toString())
  return { ...headers, ...PROXIES, body: parsed, query, timestamp: Date.now() }
}

function rawMessage({ headers }: IncomingMessage, body: Buffer): unknown {
  return { ...headers, ...PROXIES, bodyB: body.toString('base64'), timestamp: Date.now() }
}
