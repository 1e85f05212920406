// Signed deliveries, a client that posts them, and a target that they are forwarded to.
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { sign } from '../test/kit/delivery.js'
import { listening } from '../test/kit/ports.js'
import { percentile, type Scope, SECRET, until } from './rig.js'

type Payload = Readonly<Record<string, unknown>>

const require = createRequire(import.meta.url)
const examples: {
  readonly name: string
  readonly examples: readonly Payload[]
}[] = require('@octokit/webhooks-examples')
const pushes = examples.find(({ name }) => name === 'push')?.examples ?? []

/** GitHub's own example of a push with a commit, 7,678 bytes. */
export const PUSH: Payload = pushes.find(({ head_commit }) => head_commit !== null) ?? {}

/** What of it makes 1 KB, of a repository. */
export function smallPush(repository: string): Payload {
  const { ref, before, after, created, deleted, compare, pusher, head_commit } = PUSH
  const fields = { ref, before, after, created, deleted, compare, pusher, head_commit }
  return { ...fields, repository: { full_name: repository } }
}

export const signatureOf = (body: string): string => sign(SECRET, body)

/** A request as it is sent, but for the last 12 digits of its delivery id. */
export interface Prepared {
  readonly bytes: Buffer
  /** Where its delivery id is. */
  readonly at: number
}

/** A signed delivery. */
export function delivery(event: string, payload: object): Prepared {
  const body = JSON.stringify(payload)
  const head = [
    'POST /webhook HTTP/1.1',
    'Host: 127.0.0.1',
    'User-Agent: GitHub-Hookshot/bench',
    'Accept: */*',
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    `X-GitHub-Event: ${event}`,
    `X-Hub-Signature-256: ${signatureOf(body)}`,
    'X-GitHub-Delivery: ',
  ].join('\r\n')
  return { bytes: Buffer.from(`${head}${randomUUID()}\r\n\r\n${body}`), at: Buffer.byteLength(head) }
}

export interface Load {
  /** What is sent, one after the other. Default: pushes. */
  readonly deliveries?: readonly Prepared[]
  /** Each sends its next request once the last was answered. Default: 32. */
  readonly connections?: number
  /** How long, or how many. */
  readonly seconds?: number
  readonly count?: number
  /** Default: as many as are answered. */
  readonly perSecond?: number
  /** Called with each delivery's id as it is sent. */
  readonly onSend?: (id: string) => void
}

export interface Rate {
  readonly perSecond: number
  /** Milliseconds until the answer. */
  readonly p50: number
  readonly p99: number
}

const PUSHES = [delivery('push', PUSH)]

/**
 * Posts signed deliveries, each with an id of its own. It shares the processors with what it measures, so it
 * writes prepared bytes to sockets: 22 µs of processor time for a request, as wrk, where undici takes 70.
 * @throws Error unless all are answered with 200.
 */
export async function load(url: string, options: Load): Promise<Rate> {
  const { deliveries = PUSHES, connections = 32, seconds = Infinity, count = Infinity } = options
  const { perSecond = Infinity, onSend } = options
  const { hostname, port } = new URL(url)
  const ids = randomUUID().slice(0, 24)
  const times: number[] = []
  const begun = performance.now()
  let sent = 0
  const connection = async (): Promise<void> => {
    const socket = connect(Number(port), hostname).setNoDelay(true)
    await once(socket, 'connect')
    const answered = reading(socket, url)
    const own = deliveries.map(({ bytes, at }) => ({ bytes: Buffer.from(bytes), at }))
    while (sent < count && performance.now() - begun < seconds * 1000) {
      const n = sent++
      const next = own[n % own.length]
      const early = begun + (n * 1000) / perSecond - performance.now()
      if (early > 0) await sleep(early)
      const id = `${ids}${String(n).padStart(12, '0')}`
      next?.bytes.write(id, next.at, 'latin1')
      onSend?.(id)
      const sentAt = performance.now()
      socket.write(next?.bytes ?? '')
      await answered()
      times.push(performance.now() - sentAt)
    }
    socket.destroy()
  }
  await Promise.all(Array.from({ length: connections }, connection))
  const lasted = performance.now() - begun
  const rate = { perSecond: (times.length / lasted) * 1000 }
  return { ...rate, p50: percentile(times, 0.5), p99: percentile(times, 0.99) }
}

/** A function that resolves once the whole answer to a request was read. */
function reading(socket: Socket, url: string): () => Promise<void> {
  let text = ''
  let waiting: { readonly resolve: () => void; readonly reject: (error: Error) => void } | undefined
  const fail = (why: string): void => waiting?.reject(new Error(`${url}: ${why}`))
  socket.on('error', ({ message }) => fail(message)).on('end', () => fail('closed the connection'))
  socket.on('data', (data) => {
    text += data.toString('latin1')
    const head = text.indexOf('\r\n\r\n')
    if (head === -1) return
    const length = Number(/^content-length: (\d+)/im.exec(text)?.[1])
    if (!text.startsWith('HTTP/1.1 200 ') || Number.isNaN(length)) fail(`answered ${text}`)
    if (text.length < head + 4 + length) return
    text = ''
    waiting?.resolve()
  })
  return () => new Promise((resolve, reject) => void (waiting = { resolve, reject }))
}

/** A server that takes what is forwarded to it. Unlike a receiver of the tests it stores no bodies, which would be gigabytes. */
export class Target {
  url = ''
  /** When each delivery arrived, by its id; one that comes again counts when it came first. */
  readonly arrivals = new Map<string, number>()
  /** What it answers, and when. */
  status = 200
  answering: Promise<unknown> = Promise.resolve()

  static async start(scope: Scope): Promise<Target> {
    const target = new Target()
    const server = createServer((request, response) => {
      request.resume().once('end', () => {
        const id = String(request.headers['x-github-delivery'])
        if (!target.arrivals.has(id)) target.arrivals.set(id, performance.now())
        response.statusCode = target.status
        void target.answering.then(() => response.end())
      })
    })
    const { port, down } = await listening(server)
    scope.defer(down)
    target.url = `http://127.0.0.1:${port}/webhook`
    return target
  }

  /** Answers nothing until the result is called. */
  hold(): () => void {
    let release = (): void => {}
    this.answering = new Promise<void>((resolve) => (release = resolve))
    return release
  }

  /** Resolves once so many have come. */
  async received(count: number): Promise<void> {
    await until(`${count} were forwarded`, () => this.arrivals.size >= count)
  }
}
