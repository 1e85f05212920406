// How long commands take from the start of their process to its end, as a person waits for them.
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { startSandbox } from 'webhook-relay/testing'
import { load, PUSH, signatureOf, Target } from './load.js'
import {
  type Benchmark,
  type Env,
  type Figures,
  measure,
  type Pair,
  pair,
  Relay,
  type Row,
  type Rounds,
  run,
  Scope,
  thousands,
} from './rig.js'

const ROUNDS = 30
const ENTRIES = 20
/** The first is an empty Node program, the least that a command written for Node takes. */
const COMMANDS = [
  [],
  ['--version'],
  ['--help'],
  ['log'],
  ['show', 'last'],
  ['comment', 'octo/demo#1', 'hello'],
]

export const startUp: Benchmark = {
  about: `
Wall time of a command, from the start of its process to its end, with ${ENTRIES} deliveries in the journal.
\`relay comment\` has a running service, and a sandbox in another process. \`relay serve\` is timed until it
listens, and from SIGTERM to its end; its memory is what RssAnon says. ${ROUNDS} rounds.`,

  async run({ rounds }, scope) {
    await using sandbox = await startSandbox()
    const provider = { RELAY_PROVIDER: 'sandbox', RELAY_PROVIDER_URL: sandbox.url, RELAY_USER: 'bench' }
    const relays = await pair(async (build) => {
      const relay = new Relay(scope, build, provider)
      await relay.run(['login', '--with-token'], await sandbox.token())
      await relay.serve()
      await load(relay.url, { count: ENTRIES })
      return relay
    })
    const rows: Row[] = []
    for (const command of COMMANDS) {
      const isEmpty = command.length === 0
      const what = isEmpty ? 'node -e 0, ms' : `relay ${command.join(' ')}, ms`
      const figures = async (relay: Relay): Promise<Figures> => ({
        [what]: (await (isEmpty ? run(process.execPath, ['-e', '0']) : relay.run(command))).ms,
      })
      rows.push(...(await measure(rounds(ROUNDS), relays, figures)))
    }
    for (const relay of [relays.relay, relays.earlier]) await relay?.stop()
    return [...rows, ...(await serving(rounds(ROUNDS), relays, provider))]
  },
}

/** `relay serve` until it listens, and until it has ended. */
async function serving(rounds: Rounds, relays: Pair<Relay>, env: Env): Promise<readonly Row[]> {
  const timed = async (relay: Relay) => {
    const begun = performance.now()
    await relay.serveAloud()
    const [listening, { memory }] = [performance.now(), relay]
    await relay.stop()
    return { ms: listening - begun, memory, end: performance.now() - listening }
  }
  const anew = async (build: string): Promise<Figures> => {
    await using scope = new Scope()
    return { 'relay serve, new profile, ms': (await timed(new Relay(scope, build, env))).ms }
  }
  const again = async (relay: Relay): Promise<Figures> => {
    const { ms, memory, end } = await timed(relay)
    return { 'relay serve, ms': ms, 'relay serve, its end, ms': end, 'relay serve, memory, MiB': memory }
  }
  return [
    ...(await measure(rounds, await pair((build) => build), anew)),
    ...(await measure(rounds, relays, again)),
  ]
}

const REPLAYS = 9
const FIXTURES = 2_000

export const replay: Benchmark = {
  about: `
\`relay replay\` of ${thousands(FIXTURES)} fixtures of 7,678 bytes to an HTTP server that answers at once, one
after the other. Measured from the start of the program to its end. ${REPLAYS} rounds.`,

  async run({ rounds, size }, scope) {
    const count = size === 'short' ? 20 : FIXTURES
    const target = await Target.start(scope)
    const folder = scope.folder()
    for (let n = 0; n < count; n++) writeFileSync(path.join(folder, `${n}.json`), fixture(`recorded-${n}`))
    const relays = await pair((build) => new Relay(scope, build))
    const rate = async (relay: Relay): Promise<Figures> => {
      target.arrivals.clear()
      const { ms } = await relay.run(['replay', folder, '--to', target.url, '--keep-id', '--quiet'])
      if (target.arrivals.size !== count)
        throw new Error(`${target.arrivals.size} fixtures of ${count} arrived`)
      return { 'fixtures/s': (count / ms) * 1000 }
    }
    return measure(rounds(REPLAYS), relays, rate)
  },
}

function fixture(id: string): string {
  const body = JSON.stringify(PUSH)
  const headers = {
    'Content-Type': 'application/json',
    'X-GitHub-Event': 'push',
    'X-GitHub-Delivery': id,
    'X-Hub-Signature-256': signatureOf(body),
  }
  return JSON.stringify({ relay: 1, provider: 'github', event: 'push', delivery: id, headers, body })
}
