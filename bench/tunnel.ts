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
import { temporaryFolder } from './rig/folder.js'
import { PUSH, SECRET, signatureOf } from './rig/push.js'

const RELAY = process.env['RELAY_EARLIER'] ?? path.resolve('dist/bin/relay.js')
const PUSH_TEXT = PUSH.toString().slice(1)
const agent = new Agent({ keepAlive: true, maxSockets: 64 })

/** `relay serve` with a tunnel to the server, in a process of its own. */
class Relay {
  readonly home: string
  readonly #server: TunnelServer
  child: ChildProcess | undefined
  err = ''
  url = ''

  constructor(home: string, server: TunnelServer) {
    this.home = home
    this.#server = server
  }

  async start(): Promise<void> {
    const { home } = this
    const args = [RELAY, 'serve', '--port', '0', '--json', '--tunnel', this.#server.channel]
    const child = spawn(process.execPath, args, {
      env: { PATH: process.env['PATH'], HOME: home, RELAY_HOME: home, RELAY_WEBHOOK_SECRET: SECRET },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    this.child = child
    let out = ''
    child.stderr.on('data', (data) => (this.err += String(data)))
    child.stdout.on('data', (data) => {
      // The rest is read so that the pipe does not fill.
      if (out.length < 10_000) out += String(data)
    })
    while (!out.includes('"roundTrip":"ok"')) await sleep(20)
    this.url = /"url":"(http:[^"]+)"/.exec(out)?.[1] ?? ''
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

/** Sends deliveries of this size, so many at once. Returns how many were accepted. */
async function send(
  { channel }: TunnelServer,
  count: number,
  { size = 0, atOnce = 32, while: goesOn = () => true },
): Promise<number> {
  let left = count
  let accepted = 0
  const sender = async (): Promise<void> => {
    while (left-- > 0 && goesOn()) {
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

const stopped =
  (seconds: number): Scenario =>
  async (relay, server) => {
    await relay.start()
    relay.child?.kill('SIGSTOP')
    let sent = 0
    for (const end = performance.now() + seconds * 1000; performance.now() < end; await sleep(270))
      sent += await send(server, 1, {})
    relay.child?.kill('SIGCONT')
    sent += await send(server, 20, { atOnce: 1 })
    return `${await relay.kept()} of ${sent} kept`
  }

const killed: Scenario = async (relay, server) => {
  await relay.start()
  let isKilled = false
  const sending = send(server, 20_000, { while: () => !isKilled })
  await sleep(4000)
  isKilled = true
  await relay.end('SIGKILL')
  const accepted = await sending
  const kept = await relay.kept()
  relay.err = ''
  await relay.start()
  const line = relay.err.split('\n').find((one) => one.includes('without closing')) ?? 'nothing is said'
  return `${kept} of ${accepted} kept, which were sent in 4 s; at the next start: ${line}`
}

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
  'SIGKILL in a burst': [smee, killed],
  'stopped for 15 s': [smee, stopped(15)],
  'stopped for 90 s': [smee, stopped(90)],
  'gosmee with Redis': [() => startGosmee({ stream: 10_000 }), away],
  'flood without signatures': [smee, flood(undefined)],
  'flood with forged signatures': [smee, flood(`sha256=${'0'.repeat(64)}`)],
}

const wanted = process.argv.slice(2)
for (const [name, [start, run]] of Object.entries(SCENARIOS)) {
  if (wanted.length > 0 && !wanted.some((part) => name.includes(part))) continue
  using home = temporaryFolder()
  await using server = await start()
  const relay = new Relay(home.path, server)
  try {
    process.stdout.write(`${name}: ${await run(relay, server)}\n`)
  } finally {
    relay.child?.kill('SIGCONT')
    await relay.end('SIGKILL')
  }
}
agent.destroy()
