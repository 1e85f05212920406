import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { githubDelivery, post } from '../kit/delivery.js'
import { describeWith } from '../kit/needs.js'
import { stalling } from '../kit/network.js'
import { place, type Serving } from '../kit/place.js'
import { ownServer } from '../kit/postgres.js'
import { receiver } from '../kit/receiver.js'
import { REPEAT } from '../kit/repeat.js'
import { outcome, senders } from '../kit/service.js'

/** How long the server is away once the relays refuse, in milliseconds. */
const OUTAGE = REPEAT > 1 ? 60_000 : 1000
/** Milliseconds in which a relay must refuse, or work again, by itself. */
const RECOVERY = 30_000
const SENDERS = 8

/** Waits until a relay refuses deliveries, and says of itself that it is up. */
async function isRefusing({ address }: Serving): Promise<void> {
  const send = async (): Promise<number> => (await post(`${address}/webhook`, githubDelivery())).status
  await expect.poll(send, { timeout: RECOVERY }).toBe(503)
  expect((await fetch(`${address}/health`)).status).toBe(200)
}

describeWith('postgres', 'two relays under load, whose database', () => {
  it('goes away, ends their connections, and is behind a network that swallows packets: they answer 503 in time, say so, and continue by themselves', async () => {
    await using server = await ownServer()
    await using one = await stalling(server.port)
    await using other = await stalling(server.port)
    await using here = await place({ host: 'none', env: server.env })
    await using target = await receiver()
    const serve = ({ port }: { readonly port: number }): Promise<Serving> => {
      const RELAY_STORE = server.store.replace(String(server.port), String(port))
      return here.serveWith({ env: { RELAY_STORE } }, '--forward', target.url)
    }
    const relays = [await serve(one), await serve(other)]
    let turn = 0
    const url = (): string => relays[turn++ % relays.length]?.address ?? ''
    await using load = senders({ count: SENDERS, url, pause: 100 })
    await load.more(50)

    await server.stop('SIGQUIT')
    const before = load.acknowledged.size
    await Promise.all(relays.map(isRefusing))
    for (const relay of relays) await relay.says('Forwarding pauses')
    await sleep(OUTAGE)
    // An answer may have been on its way.
    expect(load.acknowledged.size - before).toBeLessThanOrEqual(SENDERS)
    await server.start()
    for (const relay of relays) await relay.says('Forwarding continues')
    await load.more(50)

    await server.run(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'relay %'`,
    )
    await load.more(50)

    for (const network of [one, other]) network.stall()
    await Promise.all(relays.map(isRefusing))
    // What one relay has sent arrives late, and never what the other has.
    other.forget()
    for (const network of [one, other]) network.resume()
    await load.more(50)

    await load.stop()
    const { lost, twice, targets } = await outcome(server, load.acknowledged, [target])
    // Every request had an answer within 6 s. An attempt whose record failed may be made again.
    expect([...load.statuses.keys()].toSorted((a, b) => a - b)).toEqual([200, 503])
    expect({ lost, twice, targets }).toEqual({
      lost: [],
      twice: [],
      targets: [{ missing: [], disordered: [], repeats: expect.any(Number) }],
    })
    for (const relay of relays) expect(await relay.stop()).toMatchObject({ code: 0 })
  })
})
