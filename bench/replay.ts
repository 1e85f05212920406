import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { fixtureText } from '../src/fixtures/fixture.js'
import { now } from './programs/clock.js'
import { ask } from './rig/ask.js'
import type { Benchmark } from './rig/benchmark.js'
import { type Folder, temporaryFolder } from './rig/folder.js'
import { inTurn } from './rig/in-turn.js'
import { PUSH, SECRET, signatureOf } from './rig/push.js'
import { compare } from './rig/row.js'
import { RELAY, type Server, startProgram } from './rig/server.js'
import { thousands } from './rig/thousands.js'

const ROUNDS = 11
const FIXTURES = 10_000
const CONCURRENCY = 32
const AUTOCANNON = createRequire(import.meta.url).resolve('autocannon/autocannon.js')
const HEADERS = {
  'Content-Type': 'application/json',
  'X-GitHub-Event': 'push',
  'X-GitHub-Delivery': 'recorded',
  'X-Hub-Signature-256': signatureOf(PUSH),
}

export const replay: Benchmark = {
  about: `A folder of ${thousands(FIXTURES)} fixtures of ${thousands(PUSH.length)} bytes each sent to a node:http server, ${CONCURRENCY} in parallel, compared with autocannon, which
sends one body as often. ${ROUNDS} rounds. Measured from the start of the program until the last request has arrived, so it includes
that relay starts, reads and signs.`,
  needs: [],
  async run() {
    await using server = await startProgram('target', {})
    using folder = temporaryFolder()
    using fixtures = writtenFixtures()
    const body = path.join(folder.path, 'body')
    writeFileSync(body, PUSH)
    const to = `${server.url}/webhook`
    const relay = [RELAY, 'replay', fixtures.path, '--to', to, '--concurrency', `${CONCURRENCY}`]
    const lines = Object.entries(HEADERS).flatMap(([name, value]) => ['-H', `${name}: ${value}`])
    const many = ['-a', `${FIXTURES}`, '-c', `${CONCURRENCY}`]
    const autocannon = [AUTOCANNON, ...many, '-m', 'POST', '-i', body, ...lines, to]
    const rates = await inTurn(ROUNDS, {
      relay: () => rate(server, relay),
      other: () => rate(server, autocannon),
    })
    const what = 'fixtures'
    return [compare({ ...rates, what, baseline: 'autocannon', unit: '/s' })]
  },
}

function writtenFixtures(): Folder {
  const folder = temporaryFolder()
  for (let n = 0; n < FIXTURES; n++) {
    const delivery = `recorded-${n}`
    const headers = { ...HEADERS, 'X-GitHub-Delivery': delivery }
    const text = {
      relay: 1,
      provider: 'github',
      event: 'push',
      delivery,
      headers,
      body: PUSH.toString(),
    } as const
    writeFileSync(path.join(folder.path, `${String(n).padStart(5, '0')}.json`), fixtureText(text))
  }
  return folder
}

/** Requests a second. */
async function rate(server: Server, args: readonly string[]): Promise<number> {
  await ask(server, 'reset')
  const begun = now()
  const child = spawn(process.execPath, args, {
    env: { PATH: process.env['PATH'], RELAY_WEBHOOK_SECRET: SECRET },
    stdio: 'ignore',
  })
  const [code] = await once(child, 'close')
  if (code !== 0) throw new Error(`node ${args.join(' ')} ended with ${code}`)
  const last = await ask(server, 'received', { count: FIXTURES })
  return (FIXTURES / (last.at - begun)) * 1000
}
