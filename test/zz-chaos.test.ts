import { it } from 'vitest'
import { Fleet, outcomeOf, startSenders, type Injury } from './helpers/chaos.js'
import { startPostgres } from './helpers/postgres.js'
import { startTarget } from './helpers/target.js'
it('chaos', async () => {
  await using server = await startPostgres()
  await using one = await startTarget()
  await using other = await startTarget()
  const flags = ['--forward', `one=${one.url}`, '--forward', `other=${other.url}`]
  await using fleet = await Fleet.start(server, { size: 3, flags, standstill: 6000 })
  let turn = 0, injured = -1
  const senders = startSenders({ count: 16, url: () => { let i = turn++ % 3; if (i === injured) i = turn++ % 3; return fleet.at(i).url }, pause: 10 })
  const kinds: Injury[] = ['killed', 'stopped', 'disconnected', 'ended']
  await senders.more(100)
  const errs: string[] = []
  for (let round = 0; round < Number(process.env['ROUNDS'] ?? 20); round++) {
    const i = Math.floor(Math.random() * 3)
    const kind = kinds[Math.floor(Math.random() * 4)]!
    const before = fleet.at(i).program
    const t = performance.now(), n = senders.acknowledged.size, r = one.received.length
    injured = kind === 'disconnected' ? -1 : i; await fleet.injure(i, kind); injured = -1
    await senders.more(50)
    console.log(round, i, kind, Math.round(performance.now() - t), 'acked', senders.acknowledged.size - n, 'received', one.received.length - r, 'gap', gap(one, t), gap(other, t))
    errs.push(`--- ${round} ${i} ${kind} ${before.pid}`)
  }
  await senders.stop()
  console.log(JSON.stringify(await outcomeOf(server, senders.acknowledged, [one, other])), senders.acknowledged.size, [...senders.statuses])
  for (const { program } of fleet.relays) console.log('=====', program.pid, program.err)
}, 900_000)
function gap(t: { received: readonly { at: number }[] }, since: number) {
  let last = since, max = 0
  for (const { at } of t.received) if (at > since) { max = Math.max(max, at - last); last = at }
  return Math.round(max)
}
