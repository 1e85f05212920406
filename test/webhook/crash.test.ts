import { randomBytes, randomUUID } from 'node:crypto'
import { Agent } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { openJournal } from '../../src/journal/open.js'
import { openDatabase } from '../../src/store/open.js'
import { emptyFolder } from '../helpers/context.js'
import { githubDelivery, post } from '../helpers/delivery.js'
import { type Served, startServe } from './programs/start.js'

/** More with RELAY_CRASH_ROUNDS. */
const ROUNDS = Number(process.env['RELAY_CRASH_ROUNDS'] ?? 4)
const IN_FLIGHT = 32

/** Sends deliveries of 7 KB, each once, until the program is gone; gives those that were answered 200. */
async function load({ webhook, child }: Served): Promise<Map<string, string>> {
  const answered = new Map<string, string>()
  const agent = new Agent({ keepAlive: true, maxSockets: IN_FLIGHT })
  const send = async (): Promise<void> => {
    while (child.signalCode === null && child.exitCode === null) {
      const id = randomUUID()
      const body = `{"id":"${id}","noise":"${randomBytes(3500).toString('hex')}"}`
      const answer = await post(webhook, githubDelivery({ id, body }), agent).catch(() => undefined)
      if (answer?.status === 200) answered.set(id, body)
      if (!answer) await sleep(1)
    }
  }
  await Promise.all(Array.from({ length: IN_FLIGHT }, send))
  agent.destroy()
  return answered
}

describe('a process killed under load', () => {
  it('has every delivery it answered 200 in the journal, once, byte for byte', async () => {
    const folder = emptyFolder()
    const answered = new Map<string, string>()
    for (let round = 1; round <= ROUNDS; round++) {
      await using served = await startServe(folder)
      const loading = load(served)
      await sleep(200 + Math.random() * 400)
      await served.kill()
      const before = answered.size
      for (const [id, body] of await loading) answered.set(id, body)
      expect(answered.size).toBeGreaterThan(before)
    }
    await using database = await openDatabase({ kind: 'file', folder })
    const stored = new Map<string, string>()
    const repeated: string[] = []
    const numbers: number[] = []
    for (const { n, deliveryId, body } of openJournal(database).entries()) {
      if (stored.has(deliveryId)) repeated.push(deliveryId)
      stored.set(deliveryId, Buffer.from(body).toString())
      numbers.push(n)
    }
    const lost = [...answered].filter(([id, body]) => stored.get(id) !== body).map(([id]) => id)
    process.stderr.write(
      `${ROUNDS} rounds: ${answered.size} answered, ${stored.size} stored, ${lost.length} lost, ${repeated.length} repeated\n`,
    )
    expect({ lost, repeated }).toEqual({ lost: [], repeated: [] })
    expect(numbers).toEqual(numbers.map((_, i) => i + 1))
  }, 60_000)
})
