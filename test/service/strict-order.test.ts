import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { linesOf } from '../kit/journal.js'
import { describeWith } from '../kit/needs.js'
import { closedPort } from '../kit/ports.js'
import { database } from '../kit/postgres.js'
import { receiver, valuesOf } from '../kit/receiver.js'
import { REPEAT } from '../kit/repeat.js'
import { fleet, idsOf, type Injury, nothingWaits, senders } from '../kit/service.js'

const RELAYS = 3
/** Each relay is killed once, and ended once, so that the one which forwards is, too. */
const INJURIES: readonly Injury[] = ['killed', 'ended']
/** Every so many deliveries one asks for another attempt. */
const TROUBLE = 10

describeWith('postgres', 'a target of three relays on one database, with strict order', () => {
  it(
    'gets no delivery before the one before it has ended, while one after the other is killed or ended',
    async () => {
      await using shared = await database()
      const troubled = new Set<string>()
      let count = 0
      await using target = await receiver(async (request) => {
        const [id = ''] = valuesOf(request, 'X-GitHub-Delivery')
        await sleep(10)
        if (troubled.has(id) || ++count % TROUBLE !== 0) return 200
        troubled.add(id)
        return 503
      })
      const routes = JSON.stringify([{ name: 'app', forward: target.url, ordered: true }])
      const env = { ...shared.env, RELAY_ROUTES: routes }
      const ports: number[] = []
      while (ports.length < RELAYS) ports.push(await closedPort())
      await using relays = await fleet({ env }, { size: RELAYS, flags: [], ports })
      let turn = 0
      const url = (): string => relays.at(turn++ % RELAYS).url
      await using load = senders({ count: 4, url, pause: 300 })
      for (let round = 0; round < REPEAT * RELAYS * INJURIES.length; round++) {
        await load.more(10)
        await relays.injure(round % RELAYS, INJURIES[Math.floor(round / RELAYS) % INJURIES.length] ?? 'ended')
      }
      await load.more(10)
      await load.stop()
      await nothingWaits(shared)
      const numbers = new Map((await linesOf(shared)).map(({ n, delivery }) => [delivery, Number(n)]))
      const received = idsOf(target).map((id) => numbers.get(id) ?? Number.NaN)
      expect(received).toEqual(received.toSorted((one, other) => one - other))
      expect(new Set(received)).toEqual(new Set(numbers.values()))
      expect([...load.acknowledged].filter((id) => !numbers.has(id))).toEqual([])
      expect(troubled.size).toBeGreaterThan(0)
    },
    240_000 * REPEAT,
  )
})
