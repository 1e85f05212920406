import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { emptyFolder } from '../kit/folder.js'
import { hub, joining, type TestHub } from '../kit/hub.js'
import { fetched, load, wrong } from '../kit/hub-load.js'
import { entriesOf } from '../kit/journal.js'
import { type Place, place, type Serving } from '../kit/place.js'
import { closedPort } from '../kit/ports.js'
import { REPEAT } from '../kit/repeat.js'

const BUILT = { built: true }
const CONNECTED = { type: 'tunnel', state: 'connected', roundTrip: 'ok' }

/** A hub whose process can be replaced on the same port and data, and a workstation with a channel there. */
async function apart(here: Place) {
  const env = { RELAY_HOME: emptyFolder() }
  const port = await closedPort()
  const start = (): Promise<TestHub> => hub({ ...BUILT, env, port })
  const first = await start()
  const given = { ...here.env, ...(await joining(first)) }
  const work = (): Promise<Serving> => here.serveWith({ ...BUILT, env: given }, '--tunnel')
  const relay = await work()
  const url = String((await relay.object(CONNECTED))['url'])
  return { first, start, relay, work, url }
}

/** The ids in the journal once nothing waits at the hub any more. */
async function arrived(here: Place, server: TestHub): Promise<readonly string[]> {
  await fetched(server)
  return (await entriesOf(here)).map(({ deliveryId }) => deliveryId)
}

describe('what a hub has answered 200 is in the journal of the workstation, once and in order', () => {
  it(
    'where the hub is killed under load, again and again',
    async () => {
      await using here = await place({ host: 'none' })
      const { first, start, relay, url } = await apart(here)
      const sending = load(url)
      let server = first
      for (let round = 1; round <= 3 * REPEAT; round++) {
        const before = sending.count()
        while (sending.count() < before + 40) await sleep(10)
        await server.stop('SIGKILL')
        server = await start()
      }
      const before = sending.count()
      while (sending.count() < before + 40) await sleep(10)
      const answered = await sending.stop()
      expect(wrong(await arrived(here, server), answered)).toEqual([])
      await relay.stop()
      await server.stop()
    },
    120_000 * (1 + REPEAT),
  )

  it('where the workstation is killed, and stopped, under load', async () => {
    await using here = await place({ host: 'none' })
    const { first, relay, work, url } = await apart(here)
    const sending = load(url)
    while (sending.count() < 40) await sleep(10)
    await relay.stop('SIGKILL')
    while (sending.count() < 80) await sleep(10)
    const second = await work()
    await second.object(CONNECTED)
    second.kill('SIGSTOP')
    while (sending.count() < 200) await sleep(10)
    second.kill('SIGCONT')
    const answered = await sending.stop()
    expect(wrong(await arrived(here, first), answered)).toEqual([])
    await second.stop()
    await first.stop()
  })
})
