import { array, assert, constantFrom, double, nat, oneof, property, record, type Arbitrary } from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { TunnelStatus } from '../../src/instance/protocol.js'
import { Reconnection, type Ended } from '../../src/tunnel/reconnect.js'
import { tunnelRefusal } from '../../src/tunnel/channel.js'
import { githubDelivery, post } from '../kit/delivery.js'
import { receiver, type Reply } from '../kit/receiver.js'
import { gosmee, smee } from '../kit/smee.js'
import { tunnel } from './tunnel-rig.js'

/** Milliseconds since 1970: the time stands still, so that a status says exactly how long it waits. */
const NOW = 1_800_000_000_000
/** First wait, longest wait of a server that is away, both before jitter. */
const [RETRY, SOON] = [10, 20]
const LIMITS = { retry: RETRY, soon: SOON }
const JITTER = 1.2

/** The waits of the first `count` attempts to connect, in milliseconds. */
async function waits(address: string, count: number, limits: object = {}): Promise<number[]> {
  await using rig = await tunnel(address, { clock: () => NOW, limits: { ...LIMITS, ...limits } })
  const { attempt } = await rig.status({ state: 'waiting', attempt: count })
  expect(attempt).toBe(count)
  const isWaiting = ({ state }: TunnelStatus): boolean => state === 'waiting'
  return rig.statuses.filter(isWaiting).map(({ retryAt }) => (retryAt ?? NaN) - NOW)
}

const ASKS = { 'retry-after': '600' }

/** A server in a state in which it may be back at any moment, and the limits that make relay notice. */
const away: Readonly<Record<string, Reply>> = {
  'a connection that is reset': 'reset',
  'a page of a host that starts it': {
    status: 200,
    headers: { 'content-type': 'text/html' },
    body: '<p>soon</p>',
  },
  'a redirect of a host that starts it': { status: 302, headers: { location: 'https://status.example/' } },
  ...Object.fromEntries(
    [500, 502, 503, 504, 520].flatMap((status) => [
      [`${status}`, status],
      [`${status} with Retry-After`, { status, headers: ASKS }],
    ]),
  ),
}

const ATTEMPTS = 6

describe('a server that is away is tried again within seconds, for as long as it takes', () => {
  /** The waits that are longer than seconds, or so short that they would flood a server. */
  const odd = (found: readonly number[]): readonly number[] =>
    found.filter((ms, n) => ms > (n === 0 ? RETRY : SOON) * JITTER || (ms < RETRY * 0.8 && n > 0))

  it.each(Object.entries(away))('%s', async (_, answer) => {
    await using server = await receiver(answer)
    expect(odd(await waits(`${server.url}/channel`, ATTEMPTS))).toEqual([])
    // Also before there is a channel.
    expect(odd(await waits(server.url, ATTEMPTS))).toEqual([])
  })

  it('a connection that is refused', async () => {
    await using server = await receiver()
    await server.down()
    expect(odd(await waits(`${server.url}/channel`, ATTEMPTS))).toEqual([])
  })

  it('a connection that is open, and on which nothing comes', async () => {
    await using server = await receiver('hang')
    expect(odd(await waits(`${server.url}/channel`, ATTEMPTS, { opening: 10 }))).toEqual([])
  })

  it('a connection that goes silent', async () => {
    await using server = await smee()
    expect(odd(await waits(server.channel, ATTEMPTS, { silence: 30, linger: 10, tick: 10 }))).toEqual([])
  })

  it('a name that is not found', async () => {
    expect(odd(await waits('http://smee..invalid/channel', ATTEMPTS))).toEqual([])
  })

  it.each([
    ['smee', smee],
    ['gosmee', gosmee],
  ])('connections that %s closes as soon as they are open', async (_, start) => {
    await using server = await start()
    const over = new AbortController()
    const closing = (async () => {
      for (let n = 0; !over.signal.aborted; n++) (await server.stream(n)).end()
    })().catch(() => {})
    expect(odd(await waits(server.channel, ATTEMPTS))).toEqual([])
    over.abort()
    await using rig = await tunnel(server.channel)
    await closing
    await rig.status({ roundTrip: 'ok' })
  })

  it.each([
    ['smee', smee],
    ['gosmee', gosmee],
  ])('%s that is back is listened to at the next attempt', async (_, start) => {
    await using server = await start()
    await using rig = await tunnel(server.channel, { clock: () => NOW, limits: LIMITS })
    await rig.status({ roundTrip: 'ok' })
    await server.down()
    await rig.status({ state: 'waiting', attempt: 12 })
    await server.up()
    await rig.status({ state: 'connected', roundTrip: 'ok' }, rig.statuses.length - 1)
    await post(server.channel, githubDelivery())
    await rig.has(1)
    expect(rig.stored).toHaveLength(1)
  })
})

describe('a server that refuses is asked less and less often', () => {
  it.each([400, 401, 403, 404, 408, 410, 429])('%s', async (status) => {
    await using server = await receiver(status)
    const found = await waits(`${server.url}/channel`, 5)
    for (const [n, ms] of found.entries()) {
      expect(ms).toBeGreaterThanOrEqual(RETRY * 2 ** n * 0.8)
      expect(ms).toBeLessThanOrEqual(RETRY * 2 ** n * JITTER)
    }
  })

  it.each([
    [429, '600', 600_000],
    [429, 'Wed, 21 Oct 2099 07:28:00 GMT', 900_000],
    [404, '86400', 900_000],
  ])('%s with Retry-After: %s', async (status, asked, ms) => {
    await using server = await receiver({ status, headers: { 'retry-after': asked } })
    expect(await waits(`${server.url}/channel`, 1)).toEqual([ms])
    expect(await waits(server.url, 1)).toEqual([ms])
  })
})

describe('the wait', () => {
  const MINUTE = 60_000
  const ends: Arbitrary<Ended> = oneof(
    record({ openFor: nat({ max: 20_000 }) }),
    record({ error: constantFrom<unknown>(new Error('reset'), refusal(503), undefined) }),
    record({ error: constantFrom(404, 429).map((status) => refusal(status)) }),
  )
  const random = (): number => 0.5

  it('after any history is a few seconds, unless the server refused just now', () => {
    assert(
      property(
        array(ends, { maxLength: 40 }),
        ends,
        double({ min: 0, max: 0.999, noNaN: true }),
        (history, last, chance) => {
          const plan = new Reconnection({ random: () => chance })
          for (const end of history) plan.after(end)
          const { ms } = plan.after(last)
          const isRefused = 'error' in last && isRefusal(last.error)
          expect(ms).toBeLessThanOrEqual(isRefused ? MINUTE * JITTER : 2400)
          expect(ms).toBeGreaterThanOrEqual('openFor' in last ? 0 : 800)
        },
      ),
    )
  })

  it('is none after a connection that lasted, and counts refusals in a row alone', () => {
    const plan = new Reconnection({ random })
    const [steady, brief, reset] = [{ openFor: 10_000 }, { openFor: 9999 }, { error: new Error('reset') }]
    const refused = { error: refusal(404) }
    const history = [
      brief,
      brief,
      brief,
      reset,
      refused,
      refused,
      refused,
      reset,
      refused,
      steady,
      reset,
      reset,
      reset,
      steady,
      steady,
      brief,
    ]
    const found = history.map((end) => plan.after(end))
    expect(found.map(({ ms }) => ms)).toEqual([
      0, 1000, 2000, 2000, 1000, 2000, 4000, 2000, 1000, 0, 1000, 2000, 2000, 0, 0, 1000,
    ])
    expect(found.map(({ attempt }) => attempt)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 1, 1, 2])
  })
})

/** The error of an answer with this status. */
function refusal(status: number): Error {
  return tunnelRefusal(`the server answers ${status}`, { status, header: () => undefined })
}

function isRefusal(error: unknown): boolean {
  return error instanceof Error && /answers 4/.test(error.message)
}
