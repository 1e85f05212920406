import { expect, it } from 'vitest'
import { describeWith } from '../kit/needs.js'
import { distant } from '../kit/network.js'
import { place } from '../kit/place.js'
import { ownServer } from '../kit/postgres.js'
import { receiver } from '../kit/receiver.js'
import { outcome, senders } from '../kit/service.js'

/** Milliseconds that the database is away: a round trip to another town. */
const ROUND_TRIP = 20
const SENDERS = 32
const DELIVERIES = 150
/** Milliseconds in which 99 of 100 deliveries are acknowledged. */
const SOON = 2000

describeWith('postgres', 'a relay whose database is in another place', () => {
  it('acknowledges what 32 senders send at once, forwards it in order, and keeps its turn', async () => {
    await using server = await ownServer()
    await using far = await distant(server.port, ROUND_TRIP)
    await using here = await place({ host: 'none', env: server.env })
    await using target = await receiver()
    const RELAY_STORE = server.store.replace(String(server.port), String(far.port))
    const relay = await here.serveWith({ env: { RELAY_STORE } }, '--forward', target.url)
    await using load = senders({ count: SENDERS, url: () => relay.address })
    await load.more(DELIVERIES)
    await load.stop()
    const sorted = load.took.toSorted((a, b) => a - b)
    expect([...load.statuses.keys()]).toEqual([200])
    expect(sorted[Math.floor(sorted.length * 0.99)]).toBeLessThan(SOON)
    const { lost, twice, targets } = await outcome(server, load.acknowledged, [target])
    expect({ lost, twice, targets }).toEqual({
      lost: [],
      twice: [],
      targets: [{ missing: [], disordered: [], repeats: 0 }],
    })
    expect(relay.err).not.toMatch(/pauses|elsewhere|unavailable/)
  })
})
