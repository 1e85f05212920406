import { randomBytes, randomUUID } from 'node:crypto'
import { Agent } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { emptyFolder } from '../helpers/context.js'
import { githubDelivery, post } from '../helpers/delivery.js'
import type { Program } from '../helpers/program.js'
import { journalOf, serve, textOf, unfinished } from '../helpers/serve.js'
import { startTarget } from '../helpers/target.js'

/** RELAY_CRASH_ROUNDS sets another number. */
const ROUNDS = Number(process.env['RELAY_CRASH_ROUNDS'] ?? 4)
const IN_FLIGHT = 32

interface Load {
  /** Resolves after the first answer. */
  readonly begun: Promise<unknown>
  /** Resolves when the program is gone: the bodies that were answered 200, by delivery id. */
  readonly ended: Promise<Map<string, string>>
}

/** Sends deliveries of 7 KB, each once, until the program is gone. */
function load(program: Program, webhook: string): Load {
  const answered = new Map<string, string>()
  const agent = new Agent({ keepAlive: true, maxSockets: IN_FLIGHT })
  const send = async (): Promise<void> => {
    const id = randomUUID()
    const body = `{"id":"${id}","noise":"${randomBytes(3500).toString('hex')}"}`
    const answer = await post(webhook, githubDelivery({ id, body }), agent).catch(() => undefined)
    if (answer?.status === 200) answered.set(id, body)
  }
  const sendMore = async (): Promise<void> => {
    while (program.child.signalCode === null) await send()
  }
  const all = async (begun: readonly Promise<void>[]): Promise<Map<string, string>> => {
    await Promise.all(begun.map(async (first) => first.then(sendMore)))
    agent.destroy()
    return answered
  }
  const begun = Array.from({ length: IN_FLIGHT }, send)
  return { begun: Promise.race(begun), ended: all(begun) }
}

describe('relay serve, killed under load and started again', () => {
  it('has stored every delivery that it answered 200 once, byte for byte, and forwards it', async () => {
    const home = emptyFolder()
    await using target = await startTarget()
    const flags = ['--forward', target.url, '--concurrency', '8', '--keep-max', '1TiB']
    const answered = new Map<string, string>()
    for (let round = 1; round <= ROUNDS; round++) {
      await using program = serve(home, [], flags)
      const loading = load(program, `${await program.url()}/webhook`)
      await loading.begun
      await sleep(Math.random() * 400)
      await program.stop('SIGKILL')
      const before = answered.size
      for (const [id, body] of await loading.ended) answered.set(id, body)
      expect(answered.size).toBeGreaterThan(before)
    }
    await forwardRemaining(home, flags)

    const entries = await journalOf(home)
    const stored = new Map(entries.map((entry) => [entry.deliveryId, textOf(entry)]))
    const lost = [...answered].filter(([id, body]) => stored.get(id) !== body).map(([id]) => id)
    const forwarded = new Set(target.received.map(({ body }) => body.toString()))
    const missing = [...stored.values()].filter((body) => !forwarded.has(body))
    process.stderr.write(
      `${ROUNDS} rounds: ${answered.size} answered, ${entries.length} stored, ${lost.length} lost; ` +
        `${missing.length} not forwarded, ${target.received.length - forwarded.size} forwarded again\n`,
    )
    expect({ lost, missing, repeated: entries.length - stored.size }).toEqual({
      lost: [],
      missing: [],
      repeated: 0,
    })
    expect(entries.map(({ n }) => n)).toEqual(entries.map((_, i) => i + 1))
  }, 120_000)
})

/** Starts relay once more and waits until every delivery was forwarded. */
async function forwardRemaining(home: string, flags: readonly string[]): Promise<void> {
  const { length } = await unfinished(home)
  await using program = serve(home, [], flags)
  await program.url()
  if (length > 0) await program.objects({ type: 'attempt', outcome: 'succeeded' }, length)
  expect((await program.stop()).code).toBe(0)
  expect(await unfinished(home)).toEqual([])
}
