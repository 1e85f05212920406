import { randomBytes, randomUUID } from 'node:crypto'
import { Agent } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { githubDelivery, post } from '../kit/delivery.js'
import { entriesOf, linesOf, waitingOf } from '../kit/journal.js'
import { type Place, place, type Serving } from '../kit/place.js'
import { receiver } from '../kit/receiver.js'
import { REPEAT } from '../kit/repeat.js'

const ROUNDS = 4 * REPEAT
const IN_FLIGHT = 32

interface Load {
  /** Resolves after the first answer. */
  readonly begun: Promise<unknown>
  /** Resolves when the program is gone: the bodies that were answered 200, by delivery id. */
  readonly ended: Promise<Map<string, string>>
}

/** Sends deliveries of 7 KB, each once, until the program is gone. */
function load({ child, address }: Serving): Load {
  const answered = new Map<string, string>()
  const agent = new Agent({ keepAlive: true, maxSockets: IN_FLIGHT })
  const send = async (): Promise<void> => {
    const id = randomUUID()
    const body = `{"id":"${id}","noise":"${randomBytes(3500).toString('hex')}"}`
    const answer = await post(`${address}/webhook`, githubDelivery({ id, body }), agent).catch(
      () => undefined,
    )
    if (answer?.status === 200) answered.set(id, body)
  }
  const sendMore = async (): Promise<void> => {
    while (child.signalCode === null) await send()
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
  it(
    'has stored every delivery that it answered 200 once, byte for byte, and forwards it',
    async () => {
      await using target = await receiver()
      await using here = await place({ host: 'none' })
      const flags = ['--forward', target.url, '--concurrency', '8', '--keep-max', '1TiB']
      const answered = new Map<string, string>()
      // Loads the sources, which would hold up the senders.
      expect(await linesOf(here)).toEqual([])
      for (let round = 1; round <= ROUNDS; round++) {
        await using program = await here.serveWith({ built: true }, ...flags)
        const loading = load(program)
        await loading.begun
        const reading = read(here, program)
        await sleep(Math.random() * 400)
        await program.stop('SIGKILL')
        const before = answered.size
        for (const [id, body] of await loading.ended) answered.set(id, body)
        expect(answered.size).toBeGreaterThan(before)
        await reading
      }
      await forwardRemaining(here, flags)

      const entries = await entriesOf(here)
      const stored = new Map(entries.map(({ deliveryId, body }) => [deliveryId, body.toString()]))
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
    },
    120_000 * REPEAT,
  )
})

/** Opens the journal again and again, as other commands do meanwhile, until the program is gone. */
async function read(here: Place, { child }: Serving): Promise<void> {
  while (child.signalCode === null) {
    const { code, err } = await here.run('log', '--json', '--last', '1')
    expect({ code, err }).toEqual({ code: 0, err: '' })
  }
}

/** Starts relay once more and waits until every delivery was forwarded. */
async function forwardRemaining(here: Place, flags: readonly string[]): Promise<void> {
  const { length } = await waitingOf(here)
  await using program = await here.serveWith({ built: true }, ...flags)
  if (length > 0) await program.objects({ type: 'attempt', outcome: 'succeeded' }, length)
  expect((await program.stop()).code).toBe(0)
  expect(await waitingOf(here)).toEqual([])
}
