// A hub beside the servers of other tunnels, each with its own client.
import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { Agent } from 'node:http'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { githubDelivery, post } from '../test/kit/delivery.js'
import { stalling } from '../test/kit/network.js'
import { closedPort } from '../test/kit/ports.js'
import { PUSH, Target } from './load.js'
import {
  amount,
  answering,
  type Benchmark,
  end,
  type Env,
  type Figures,
  median,
  percentile,
  Relay,
  type Row,
  Scope,
  SECRET,
  thousands,
  until,
} from './rig.js'

const ROUNDS = 3
const USUAL = { latency: 200, burst: 5000, asleep: 100, sleepMs: 10_000 }
const SHORT = { latency: 20, burst: 250, asleep: 20, sleepMs: 2000 }
type Counts = typeof USUAL
const SENDERS = 32
/** What has not come after this long without another delivery is lost. */
const LOST_MS = 5000
const PROBE_MS = 100
/** The folder of a smee.io with its packages, and the program of gosmee. */
const { RELAY_SMEE, RELAY_GOSMEE } = process.env

type Line = Awaited<ReturnType<typeof stalling>>

/** A tunnel that runs. */
interface Tunnel {
  /** Where senders post. */
  readonly url: string
  /** The network between the server and its client. */
  readonly line: Line
  readonly client: { kill(signal: NodeJS.Signals): unknown }
}

interface Kind {
  readonly name: string
  /** Why its column has no figures. */
  readonly missing?: string | undefined
  readonly open: (scope: Scope, target: Target) => Promise<Tunnel>
}

const KINDS: readonly Kind[] = [
  {
    name: 'smee.io with smee-client',
    missing: RELAY_SMEE === undefined ? 'RELAY_SMEE is not set' : undefined,
    async open(scope, target) {
      const port = await closedPort()
      const hook = pathToFileURL(path.resolve('bench/on-loopback.mjs')).href
      const args = ['--import', hook, 'index.js']
      const server = program(scope, process.execPath, args, { PORT: `${port}` }, RELAY_SMEE)
      const { line, url } = await reached(scope, server, port)
      const channel = randomUUID()
      const smee = path.resolve('node_modules/.bin/smee')
      const argv = ['--url', `http://127.0.0.1:${line.port}/${channel}`, '--target', target.url]
      return { url: `${url}/${channel}`, line, client: program(scope, smee, argv) }
    },
  },
  {
    name: 'gosmee',
    missing: RELAY_GOSMEE === undefined ? 'RELAY_GOSMEE is not set' : undefined,
    async open(scope, target) {
      const gosmee = RELAY_GOSMEE ?? ''
      const port = await closedPort()
      const server = program(scope, gosmee, ['server', '--address', '127.0.0.1', '--port', `${port}`])
      const { line, url } = await reached(scope, server, port)
      const channel = randomUUID()
      const client = program(scope, gosmee, [
        'client',
        `http://127.0.0.1:${line.port}/${channel}`,
        target.url,
      ])
      return { url: `${url}/${channel}`, line, client }
    },
  },
  {
    name: 'relay hub',
    async open(scope, target) {
      const port = await closedPort()
      const operator = new Relay(scope, path.resolve())
      const { line } = await reached(scope, operator.start('hub', '--port', `${port}`), port)
      const { out } = await operator.run(['hub', 'invite'])
      const tunnel = `http://127.0.0.1:${line.port}`
      const relay = new Relay(scope, path.resolve(), { RELAY_HUB_TOKEN: out.trim() })
      const lines = await relay.serveAloud('--tunnel', tunnel, '--forward', target.url)
      let found: string | undefined
      lines.on('line', (text) => {
        found ??= /"type":"tunnel".*"url":"([^"]+)".*"roundTrip":"ok"/.exec(text)?.[1]
      })
      await until('the hub has a channel', () => found !== undefined)
      return { url: String(found).replace(`:${line.port}/`, `:${port}/`), line, client: relay }
    },
  },
]

export const servers: Benchmark = {
  about: `
Signed pushes through a server and its client to an HTTP target. Latency: from the beginning of the request to its arrival, one after the
other. Burst: ${SENDERS} senders post ${thousands(USUAL.burst)}; how many were answered 2xx and arrived, the seconds until all were answered, and until the last
arrived. Asleep: the client is stopped for ${USUAL.sleepMs / 1000} s, nothing passes the network meanwhile, and the connection is closed when it wakes; of
${USUAL.asleep} requests that were answered 2xx meanwhile, how many never arrive, and the seconds until one that is sent after it woke arrives. Connections:
those that the client opened for the latency figure. smee.io of RELAY_SMEE, smee-client of node_modules, gosmee of RELAY_GOSMEE, without Redis. Medians of ${ROUNDS} rounds,
each with new servers.`,

  head: ['', ...KINDS.map(({ name }) => name)],

  async run({ rounds, size }) {
    const counts = size === 'short' ? SHORT : USUAL
    const found = new Map<string, Map<Kind, number[]>>()
    for (let round = 0; round < rounds(ROUNDS).count; round++)
      for (const kind of round % 2 ? KINDS.toReversed() : KINDS) {
        if (kind.missing !== undefined) continue
        for (const [what, value] of Object.entries(await figuresOf(kind, counts))) {
          const values = found.get(what) ?? new Map<Kind, number[]>()
          found.set(what, values.set(kind, [...(values.get(kind) ?? []), value]))
        }
      }
    return [...found].map(([what, values]): Row => [
      what,
      ...KINDS.map((kind) => {
        const all = values.get(kind)
        return all ? amount(median(all)) : (kind.missing ?? '-')
      }),
    ])
  },
}

async function figuresOf(kind: Kind, counts: Counts): Promise<Figures> {
  await using scope = new Scope()
  const target = await Target.start(scope)
  const tunnel = await kind.open(scope, target)
  const agent = new Agent({ keepAlive: true, maxSockets: SENDERS })
  scope.defer(() => agent.destroy())
  /** Resolves to the id of a delivery that was answered 2xx. */
  const send = async (id: string = randomUUID()): Promise<string | undefined> => {
    const body = JSON.stringify({ nonce: id, ...PUSH })
    const answer = await post(tunnel.url, githubDelivery({ id, body, secret: SECRET }), agent)
    return answer.status >= 200 && answer.status < 300 ? id : undefined
  }
  await receiving(target, send)
  return {
    ...(await latency(target, tunnel, send, counts)),
    ...(await burst(target, send, counts)),
    ...(await asleep(target, tunnel, send, counts)),
  }
}

type Send = (id?: string) => Promise<string | undefined>

async function latency(
  target: Target,
  { line }: Tunnel,
  send: Send,
  { latency: count }: Counts,
): Promise<Figures> {
  const before = line.count()
  const times: number[] = []
  for (let i = 0; i < count; i++) {
    const id = randomUUID()
    const begun = performance.now()
    await send(id)
    await until('it arrives', () => target.arrivals.has(id))
    times.push((target.arrivals.get(id) ?? Number.NaN) - begun)
  }
  return {
    'latency, p50 ms': percentile(times, 0.5),
    'latency, p99 ms': percentile(times, 0.99),
    [`connections for ${count} deliveries`]: line.count() - before,
  }
}

async function burst(target: Target, send: Send, { burst: count }: Counts): Promise<Figures> {
  const begun = performance.now()
  const answered: (string | undefined)[] = []
  let left = count
  const sender = async (): Promise<void> => {
    while (left-- > 0) answered.push(await send())
  }
  await Promise.all(Array.from({ length: SENDERS }, sender))
  const lasted = performance.now() - begun
  const ids = answered.filter((id) => id !== undefined)
  await quiet(target, ids)
  const arrived = ids.flatMap((id) => target.arrivals.get(id) ?? [])
  return {
    [`burst of ${thousands(count)}, answered 2xx`]: ids.length,
    'burst, arrived': arrived.length,
    'burst, s until all were answered': lasted / 1000,
    'burst, s until the last arrived': (Math.max(...arrived) - begun) / 1000,
  }
}

async function asleep(
  target: Target,
  { line, client }: Tunnel,
  send: Send,
  { asleep: count, sleepMs }: Counts,
): Promise<Figures> {
  client.kill('SIGSTOP')
  line.stall()
  const answered: (string | undefined)[] = []
  for (let i = 0; i < count; i++) {
    answered.push(await send())
    await sleep(sleepMs / count)
  }
  line.cut()
  line.resume()
  client.kill('SIGCONT')
  const woken = performance.now()
  await receiving(target, send)
  const back = performance.now() - woken
  const ids = answered.filter((id) => id !== undefined)
  await quiet(target, ids)
  return {
    [`asleep, of ${count}: answered 2xx`]: ids.length,
    'asleep, lost of those': ids.filter((id) => !target.arrivals.has(id)).length,
    'asleep, s until it receives again': back / 1000,
  }
}

/** Sends until something arrives that was sent since. */
async function receiving(target: Target, send: Send): Promise<void> {
  const sent: string[] = []
  await until('the client receives', async () => {
    const id = await send()
    if (id !== undefined) sent.push(id)
    await sleep(PROBE_MS)
    return sent.some((each) => target.arrivals.has(each))
  })
}

/** Resolves once all of these have arrived, or nothing has for some seconds. */
async function quiet({ arrivals }: Target, ids: readonly string[]): Promise<void> {
  let [size, at] = [arrivals.size, performance.now()]
  while (!ids.every((id) => arrivals.has(id)) && performance.now() - at < LOST_MS) {
    await sleep(50)
    if (arrivals.size !== size) [size, at] = [arrivals.size, performance.now()]
  }
}

function program(
  scope: Scope,
  file: string,
  args: readonly string[],
  env: Env = {},
  cwd = scope.folder(),
): ChildProcess {
  const own = { PATH: process.env['PATH'] ?? '', HOME: scope.folder(), NODE_ENV: 'development' }
  const child = spawn(file, args, { cwd, env: { ...own, ...env }, stdio: 'ignore' })
  scope.defer(() => end(child, 'SIGKILL'))
  return child
}

/** Resolves once a server answers, with the network before it. */
async function reached(
  scope: Scope,
  server: ChildProcess,
  port: number,
): Promise<{ readonly line: Line; readonly url: string }> {
  const failed = once(server, 'error').then(([error]) => Promise.reject(error))
  const url = `http://127.0.0.1:${port}`
  await Promise.race([answering(url, server), failed])
  failed.catch(() => {})
  return { line: scope.use(await stalling(port)), url }
}
