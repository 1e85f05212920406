import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { sign } from '../../src/webhook/signature.js'
import { QUEUE_LIMITS } from '../../src/tunnel/queue.js'
import { SECRET } from '../helpers/delivery.js'
import { entriesOf } from '../helpers/journal.js'
import { smee as startSmee } from '../kit/smee.js'
import { startTunnel } from './rig.js'

/** A signed message whose body has a number, of about this many bytes. */
function numbered(n: number, bytes = 100): string {
  const body = JSON.stringify({ n, text: 'x'.repeat(bytes) })
  const signature = sign(SECRET, Buffer.from(body))
  return `data: {"x-github-event":"push","x-github-delivery":"${randomUUID()}","x-hub-signature-256":"${signature}","body":${body}}\n\n`
}

const unsigned = `data: {"x-github-event":"push","body":{"text":"${'x'.repeat(1000)}"}}\n\n`
const forged = `data: {"x-hub-signature-256":"sha256=${'0'.repeat(64)}","body":{}}\n\n`

describe('a burst', () => {
  it('is kept in order, large and small messages alike, and nothing is dropped when the queue is full', async () => {
    await using smee = await startSmee()
    const queue = { ...QUEUE_LIMITS, messages: 20, bytes: 200_000, storing: 8 }
    await using rig = await startTunnel(smee.channel, { limits: { queue } })
    await rig.status({ roundTrip: 'ok' })
    const numbers = Array.from({ length: 500 }, (_, i) => i)
    smee.write(numbers.map((n) => numbered(n, n % 50 === 7 ? 50_000 : 500)).join(''))
    await rig.stored(500)
    const bodies = (await entriesOf(rig.journal)).map(({ body }) =>
      Number(/\d+/.exec(String(Buffer.from(body)))),
    )
    expect(bodies).toEqual(numbers)
    expect(rig.logged).toEqual([])
  })

  it('is stored in shared commits: the next message is handled while one waits for the disk', async () => {
    await using smee = await startSmee()
    const waiting: (() => void)[] = []
    const receive = async (): Promise<never> => {
      await new Promise<void>((resolve) => waiting.push(resolve))
      throw new Error('not stored')
    }
    await using rig = await startTunnel(smee.channel, { intake: { receive } })
    await rig.status({ roundTrip: 'ok' })
    smee.write([1, 2, 3].map((n) => numbered(n)).join(''))
    await expect.poll(() => waiting.length).toBe(3)
    for (const resolve of waiting) resolve()
  })

  it('loses nothing to a flood of unsigned messages', async () => {
    await using smee = await startSmee()
    await using rig = await startTunnel(smee.channel)
    await rig.status({ roundTrip: 'ok' })
    for (let n = 0; n < 20; n++) smee.write(`${unsigned.repeat(200)}${numbered(n)}${forged.repeat(20)}`)
    await rig.stored(20)
    expect((await entriesOf(rig.journal)).length).toBe(20)
    expect(rig.logged.filter((line) => line.startsWith('a tunnel message was refused')).length).toBeLessThan(
      20,
    )
  })

  it('of unsigned messages takes no place in the queue', async () => {
    await using smee = await startSmee()
    const queue = { ...QUEUE_LIMITS, messages: 2 }
    let isStored = (): void => {}
    const stored = new Promise<void>((resolve) => (isStored = resolve))
    const receive = async (): Promise<never> => {
      await stored
      throw new Error('not stored')
    }
    await using rig = await startTunnel(smee.channel, { intake: { receive }, limits: { queue } })
    await rig.status({ roundTrip: 'ok' })
    smee.write(numbered(1) + unsigned.repeat(3))
    expect(await rig.logLine('refused')).toContain('there is no X-Hub-Signature-256')
    isStored()
  })
})
