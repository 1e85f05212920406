import { expect, it } from 'vitest'
import { githubDelivery, post } from '../helpers/delivery.js'
import { describeWith } from '../helpers/needs.js'
import { type PostgresServer, startPostgres } from '../helpers/postgres.js'
import { startServiceRelay } from '../helpers/service.js'
import { startTarget, type TargetServer, valuesOf } from '../helpers/target.js'

/** The ids of the deliveries that a target got, in order. */
function idsOf({ received }: TargetServer): readonly string[] {
  return received.flatMap((handed) => valuesOf(handed, 'X-GitHub-Delivery'))
}

/** How many forwards the journal has waiting. */
async function waitingCount(server: PostgresServer): Promise<number> {
  const { rows } = await server.run(
    `SELECT count(*)::int AS count FROM relay_default.forward WHERE status = 'waiting'`,
  )
  return Number(rows[0]?.count)
}

describeWith('postgres', 'two relays on one database', () => {
  it('are one service: each takes in, one forwards, in order; the other takes over when it is killed', async () => {
    await using server = await startPostgres()
    await using target = await startTarget()
    const flags = ['--forward', target.url]
    await using first = await startServiceRelay(server, flags)
    await using second = await startServiceRelay(server, flags)
    const send = async (url: string, id: string) => {
      expect((await post(`${url}/webhook`, githubDelivery({ id }))).status).toBe(200)
    }
    const ids = Array.from({ length: 20 }, (_, i) => String(i))
    for (const id of ids) await send(Number(id) % 2 === 0 ? first.url : second.url, id)
    await target.has(20)
    expect(idsOf(target)).toEqual(ids)
    await expect.poll(() => waitingCount(server)).toBe(0)
    await first.program.stop('SIGKILL')
    const before = performance.now()
    await send(second.url, 'after')
    await target.has(21)
    expect(performance.now() - before).toBeLessThan(5000)
    expect(idsOf(target)).toEqual([...ids, 'after'])
  }, 60_000)
})
