import { expect, it } from 'vitest'
import { Fleet, idsOf, type Injury, nothingWaits, outcomeOf, startSenders } from '../helpers/chaos.js'
import { githubDelivery, post } from '../helpers/delivery.js'
import { describeWith } from '../helpers/needs.js'
import { startPostgres } from '../helpers/postgres.js'
import { startServiceRelay } from '../helpers/service.js'
import { startTarget } from '../helpers/target.js'

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
    await nothingWaits(server)
    await first.program.stop('SIGKILL')
    const before = performance.now()
    await send(second.url, 'after')
    await target.has(21)
    expect(performance.now() - before).toBeLessThan(5000)
    expect(idsOf(target)).toEqual([...ids, 'after'])
  }, 60_000)
})

const ROUNDS: readonly Injury[] = ['killed', 'stopped', 'disconnected', 'ended', 'killed', 'stopped', 'ended']

describeWith('postgres', 'three relays on one database', () => {
  it('lose and store twice nothing, and keep the order, while one after the other is injured', async () => {
    await using server = await startPostgres()
    await using one = await startTarget()
    await using other = await startTarget()
    const flags = ['--forward', `one=${one.url}`, '--forward', `other=${other.url}`]
    await using fleet = await Fleet.start(server, { size: 3, flags })
    let turn = 0
    const senders = startSenders({ count: 16, url: () => fleet.at(turn++ % 3).url })
    await senders.more(100)
    for (const [round, injury] of ROUNDS.entries()) {
      await fleet.injure(round % 3, injury)
      await senders.more(100)
    }
    await senders.stop()
    const outcome = await outcomeOf(server, senders.acknowledged, [one, other])
    const clean = { missing: [], disordered: [], repeats: expect.any(Number) }
    expect(outcome).toEqual({ lost: [], twice: [], targets: [clean, clean] })
    for (const { repeats } of outcome.targets) expect(repeats).toBeLessThanOrEqual(ROUNDS.length)
  }, 300_000)
})
