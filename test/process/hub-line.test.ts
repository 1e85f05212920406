import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { hub, joining, type TestHub } from '../kit/hub.js'
import { fetched, idsIn, load, wrong } from '../kit/hub-load.js'
import { stalling } from '../kit/network.js'
import { type Place, place, type Serving } from '../kit/place.js'

const CONNECTED = { type: 'tunnel', state: 'connected', roundTrip: 'ok' }
const BUILT = { built: true }
const IN_FLIGHT_MS = 200

/** A hub under load, its workstation, and the line between them. */
interface Scene {
  readonly here: Place
  readonly server: TestHub
  readonly relay: Serving
  readonly line: Awaited<ReturnType<typeof stalling>>
  readonly sending: ReturnType<typeof load>
  /** Starts the workstation again. */
  readonly again: () => Promise<Serving>
}

/** What befalls them. */
const FAULTS: Readonly<Record<string, (scene: Scene) => Promise<unknown>>> = {
  'the workstation sleeps for 15 s': async ({ relay }) => {
    relay.kill('SIGSTOP')
    await sleep(15_000)
    relay.kill('SIGCONT')
  },
  'the workstation is killed 10 times': async ({ relay, again, sending }) => {
    for (let [round, running] = [0, relay]; round < 10; round++) {
      await sending.more(20)
      await running.stop('SIGKILL')
      running = await again()
    }
  },
  'each connection is cut, 40 times': async ({ line, sending }) => {
    for (let round = 0; round < 40; round++) {
      await sending.more(10)
      line.cut()
    }
  },
  'nothing gets through for a while, and then all of it': async ({ line, sending }) => {
    for (let round = 0; round < 5; round++) {
      line.stall()
      await sending.more(20)
      await sleep(IN_FLIGHT_MS)
      line.resume()
      await sending.more(20)
    }
  },
  'a connection is half open: nothing gets through any more, and it is not closed': async ({
    line,
    sending,
    relay,
  }) => {
    line.forget()
    await sending.more(20)
    await relay.says('no answer within 25 s')
  },
  'the line takes 2,000 bytes a second': async ({ line, sending }) => {
    line.slowDown(2000)
    await sending.more(40)
    await sleep(5000)
    line.resume()
  },
  'the line takes 5 bytes a second, which is less than a request needs': async ({ line, sending, relay }) => {
    line.slowDown(5)
    await sending.more(20)
    // Those that are open, whose rest the hub waits for no longer.
    await relay.says(/tunnel is down|tunnel lost|waiting/)
    await sleep(5000)
    line.cut()
    line.resume()
  },
}

describe('what a hub has answered 200 is in the journal of the workstation, once and in order, where', () => {
  it.each(Object.entries(FAULTS))('%s', async (_, befall) => {
    await using server = await hub(BUILT)
    await using line = await stalling(Number(new URL(server.address).port))
    await using here = await place({ host: 'none' })
    const env = { ...here.env, ...(await joining(server)), RELAY_TUNNEL: `http://127.0.0.1:${line.port}` }
    const again = (): Promise<Serving> => here.serveWith({ ...BUILT, env }, '--tunnel')
    const relay = await again()
    const { url } = await relay.object(CONNECTED)
    // Senders come by another way.
    const sending = load(String(url).replace(`:${line.port}/`, `:${new URL(server.address).port}/`), {
      every: 50,
    })
    await sending.more(20)
    await befall({ here, server, relay, line, sending, again })
    await sending.more(40)
    const answered = await sending.stop()
    await fetched(server)
    expect(wrong(await idsIn(here), answered)).toEqual([])
    expect([...sending.statuses]).toEqual([200])
  })
})
