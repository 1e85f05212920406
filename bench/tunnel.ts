// npm run bench:tunnel [-- <name> …]: what the tunnel keeps of bursts, pauses and floods. RELAY_EARLIER names the built
// program of another relay to measure instead. The figures are recorded in docs/decisions/030-the-tunnel-drops-nothing.md.
import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { Agent, get } from 'node:http'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { openJournal } from '../src/journal/open.js'
import { openDatabase } from '../src/store/open.js'
import { post } from '../test/helpers/delivery.js'
import { startGosmee } from '../test/helpers/gosmee-server.js'
import { startSmee } from '../test/helpers/smee-server.js'
import type { TunnelServer } from '../test/helpers/tunnel-server.js'
import { startWire } from '../test/helpers/wire.js'
import { temporaryFolder } from './rig/folder.js'
import { PUSH, SECRET, signatureOf } from './rig/push.js'

const RELAY = process.env['RELAY_EARLIER'] ?? path.resolve('dist/bin/relay.js')
const PUSH_TEXT = PUSH.toString().slice(1)
const agent = new Agent({ keepAlive: true, maxSockets: 64 })

/** `relay serve` with a tunnel to the server, in a process of its own. */
class Relay {
  readonly home: string
  channel: string
  child: ChildProcess | undefined
  err = ''
  url = ''

  constructor(home: string, channel: string) {
    this.home = home
    this.channel = channel
  }

  async start(): Promise<void> {
    const { home } = this
    const args = [RELAY, 'serve', '--port', '0', '--json', '--tunnel', this.channel]
    const child = spawn(process.execPath, args, {
      env: { PATH: process.env['PATH'], HOME: home, RELAY_HOME: home, RELAY_WEBHOOK_SECRET: SECRET },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    this.child = child
    this.url = ''
    let end = ''
    child.stderr.on('data', (data) => (this.err += String(data)))
    await new Promise<void>((resolve) =>
      child.stdout.on('data', (data) => {
        end = (end + String(data)).slice(-10_000)
        this.url ||= /"url":"(http:[^"]+)"/.exec(end)?.[1] ?? ''
        if (end.includes('"roundTrip":"ok"')) resolve()
      }),
    )
  }

  async end(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    const ended = this.child && once(this.child, 'close')
    this.child?.kill(signal)
    await ended
  }

  /** How many entries its journal has once this number no longer grows. */
  async kept(): Promise<number> {
    await using database = await openDatabase({ kind: 'file', folder: path.join(this.home, 'default') })
    const journal = openJournal(database.sql)
    let before = -1
    for (let same = 0; same < 10;) {
      const count = await journal.newest()
      same = count === before ? same + 1 : 0
      before = count
      await sleep(200)
    }
    return before
  }

  /** MiB. */
  memory(): number {
    const status = readFileSync(`/proc/${this.child?.pid}/status`, 'utf8')
    return Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1]) / 1024
  }
}

/** Sends deliveries of this size, so many at once, and no more per second than this. Returns how many were accepted. */
async function send(
  { channel }: TunnelServer,
  count: number,
  { size = 0, atOnce = 32, perSecond = Infinity, while: goesOn = () => true },
): Promise<number> {
  const began = performance.now()
  let begun = 0
  let accepted = 0
  const sender = async (): Promise<void> => {
    while (begun < count && goesOn()) {
      const due = began + (begun++ * 1000) / perSecond
      if (due > performance.now()) await sleep(due - performance.now())
      const { status } = await post(channel, delivery(size), agent).catch(() => ({ status: 0 }))
      if (status < 300 && status > 0) accepted++
    }
  }
  await Promise.all(Array.from({ length: atOnce }, sender))
  return accepted
}

function delivery(size: number) {
  const body = Buffer.from(`{"nonce":"${randomUUID()}","filling":"${'x'.repeat(size)}",${PUSH_TEXT}`)
  const headers = [
    ['Content-Type', 'application/json'],
    ['X-GitHub-Event', 'push'],
    ['X-GitHub-Delivery', randomUUID()],
    ['X-Hub-Signature-256', signatureOf(body)],
  ] as const
  return { headers, body }
}

type Scenario = (relay: Relay, server: TunnelServer) => Promise<string>

const burst =
  (count: number, options: { readonly size?: number; readonly atOnce?: number }): Scenario =>
  async (relay, server) => {
    await relay.start()
    const began = performance.now()
    const accepted = await send(server, count, options)
    const seconds = ((performance.now() - began) / 1000).toFixed(1)
    return `${await relay.kept()} of ${accepted} kept, which were sent in ${seconds} s`
  }

/** What is sent while this lasts, and 20 deliveries after it. */
async function sentDuring(server: TunnelServer, seconds: number, end: () => void): Promise<number> {
  let sent = 0
  for (const until = performance.now() + seconds * 1000; performance.now() < until; await sleep(270))
    sent += await send(server, 1, {})
  end()
  return sent + (await send(server, 20, { atOnce: 1 }))
}

const stopped =
  (seconds: number): Scenario =>
  async (relay, server) => {
    await relay.start()
    relay.child?.kill('SIGSTOP')
    const sent = await sentDuring(server, seconds, () => relay.child?.kill('SIGCONT'))
    return `${await relay.kept()} of ${sent} kept`
  }

/** The network passes nothing on for some time, and loses nothing. */
const stalled =
  (seconds: number): Scenario =>
  async (relay, server) => {
    await using wire = await startWire(server.url)
    relay.channel = server.channel.replace(server.url, wire.url)
    await relay.start()
    wire.stall(true)
    const sent = await sentDuring(server, seconds, () => wire.stall(false))
    return `${await relay.kept()} of ${sent} kept`
  }

const killed =
  (perSecond: number): Scenario =>
  async (relay, server) => {
    await relay.start()
    let isKilled = false
    const sending = send(server, 20_000, { perSecond, while: () => !isKilled })
    await sleep(4000)
    isKilled = true
    relay.child?.kill('SIGSTOP')
    const held = `${server.unsent() >> 10} KiB were with the server, ${inSockets(server) >> 10} KiB in sockets`
    await relay.end('SIGKILL')
    const accepted = await sending
    const kept = await relay.kept()
    relay.err = ''
    await relay.start()
    const line = relay.err.split('\n').find((one) => one.includes('without closing')) ?? 'nothing is said'
    const later = await relay.kept()
    return `${kept} of ${accepted} kept, which were sent in 4 s; ${held}; after the next start: ${later} kept, ${line}`
  }

/** Bytes that the kernel holds for the server's connections. */
function inSockets({ url }: TunnelServer): number {
  const port = Number(new URL(url).port).toString(16).toUpperCase().padStart(4, '0')
  const queues = [...readFileSync('/proc/net/tcp', 'utf8').matchAll(QUEUES)]
  return queues
    .filter(([, local, remote]) => [local, remote].includes(port))
    .reduce((sum, [, , , sent = '', received = '']) => sum + parseInt(sent, 16) + parseInt(received, 16), 0)
}
const QUEUES = /[\dA-F]{8}:([\dA-F]{4}) [\dA-F]{8}:([\dA-F]{4}) 01 ([\dA-F]{8}):([\dA-F]{8})/g

const away: Scenario = async (relay, server) => {
  await relay.start()
  let sent = await send(server, 5, { atOnce: 1 })
  await relay.kept()
  await relay.end()
  sent += await send(server, 5, { atOnce: 1 })
  await relay.start()
  await relay.kept()
  relay.child?.kill('SIGSTOP')
  server.hangUp()
  sent += await send(server, 5, { atOnce: 1 })
  relay.child?.kill('SIGCONT')
  return `${await relay.kept()} of ${sent} kept`
}

const flood =
  (signature: string | undefined): Scenario =>
  async (relay, server) => {
    await relay.start()
    const junk = (): object => ({
      'content-type': 'application/json',
      'x-github-event': 'push',
      'x-github-delivery': randomUUID(),
      ...(signature === undefined ? {} : { 'x-hub-signature-256': signature }),
      body: JSON.parse(`{${PUSH_TEXT}`) as unknown,
      timestamp: Date.now(),
    })
    let isOver = false
    const slowest = slowestHealth(relay, () => isOver)
    let memory = 0
    let genuine = 0
    // 150 steps of 100 ms.
    const began = performance.now()
    for (let step = 0; step < 150; step++) {
      for (let i = 0; i < 35_000 / 150; i++) server.message(junk())
      if (step % 2 === 0 && genuine < 70) genuine += await send(server, 1, {})
      memory = Math.max(memory, relay.memory())
      await sleep(Math.max(0, began + (step + 1) * 100 - performance.now()))
    }
    const seconds = ((performance.now() - began) / 1000).toFixed(1)
    let kept = await relay.kept()
    // A genuine delivery may come after many forged ones.
    for (let i = 0; kept < genuine && i < 60; i++) kept = await relay.kept()
    memory = Math.max(memory, relay.memory())
    isOver = true
    const all = ((performance.now() - began) / 1000).toFixed(1)
    return `${kept} of ${genuine} kept, all after ${all} s (flood: ${seconds} s); /health: ${await slowest}; ${memory.toFixed(0)} MiB at most`
  }

async function slowestHealth({ url }: Relay, isOver: () => boolean): Promise<string> {
  const all: number[] = []
  for (; !isOver(); await sleep(50)) {
    const began = performance.now()
    await new Promise<void>((resolve) =>
      get(`${url}/health`, { agent }, (response) => response.resume().on('end', resolve)),
    )
    all.push(performance.now() - began)
  }
  all.sort((a, b) => a - b)
  return `median ${all[all.length >> 1]?.toFixed(1)} ms, slowest ${all.at(-1)?.toFixed(0)} ms`
}

const smee = (): Promise<TunnelServer> => startSmee()
const SCENARIOS: Readonly<Record<string, readonly [start: () => Promise<TunnelServer>, run: Scenario]>> = {
  'burst of 2,000': [smee, burst(2000, {})],
  'burst of 5,000': [smee, burst(5000, {})],
  'burst of 60 × 500 KB': [smee, burst(60, { size: 500_000, atOnce: 8 })],
  'SIGKILL in a burst at 1,000 per second': [smee, killed(1000)],
  'SIGKILL in a burst at full speed': [smee, killed(Infinity)],
  'SIGKILL in a burst, gosmee with Redis': [() => startGosmee({ stream: 20_000 }), killed(1000)],
  'stopped for 15 s': [smee, stopped(15)],
  'stopped for 90 s': [smee, stopped(90)],
  'network stalled for 80 s': [smee, stalled(80)],
  'gosmee with Redis': [() => startGosmee({ stream: 10_000 }), away],
  'flood without signatures': [smee, flood(undefined)],
  'flood with forged signatures': [smee, flood(`sha256=${'0'.repeat(64)}`)],
}

const wanted = process.argv.slice(2)
for (const [name, [start, run]] of Object.entries(SCENARIOS)) {
  if (wanted.length > 0 && !wanted.some((part) => name.includes(part))) continue
  using home = temporaryFolder()
  await using server = await start()
  const relay = new Relay(home.path, server.channel)
  try {
    process.stdout.write(`${name}: ${await run(relay, server)}\n`)
  } finally {
    relay.child?.kill('SIGCONT')
    await relay.end('SIGKILL')
  }
}
agent.destroy()
