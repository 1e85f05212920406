import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { RelayError } from '../../src/base/errors.js'
import {
  catchUp,
  type CatchUpOptions,
  findMissed,
  oneCatchUp,
  placeIn,
  requireLog,
} from '../../src/codehost/catch-up.js'
import type { DeliveryLog, HookDelivery } from '../../src/codehost/host.js'
import { HOST_KINDS, openHost } from '../../src/codehost/hosts.js'
import { openDatabase } from '../../src/store/open.js'
import { failure } from './codehost-rig.js'

const sent = (n: number, more: Partial<HookDelivery> = {}): HookDelivery => ({
  id: `${n}`,
  guid: `g${n}`,
  event: 'push',
  action: null,
  deliveredAt: n,
  redelivery: false,
  statusCode: 502,
  status: 'failed to connect to host',
  ...more,
})
const FAILED = { redelivery: true, statusCode: 500, status: 'Invalid HTTP Response: 500' }
const error = (
  kind: ConstructorParameters<typeof RelayError>[0],
  text: string,
  retryAfter?: number,
): RelayError => new RelayError(kind, text, { retryAfter })

type Outcome = 'arrives' | 'fails' | RelayError

/** A log of five deliveries, and a journal; `outcome` says what becomes of each that is asked for. */
function rig(
  outcome: (guid: string) => Outcome = () => 'arrives',
  entries = [5, 4, 3, 2, 1].map((n) => sent(n)),
) {
  const has = new Set<string>()
  const asked: string[] = []
  const waits: string[] = []
  let reached = -1n
  const log: DeliveryLog = {
    page: () => Promise.resolve({ deliveries: [...entries], next: undefined }),
    async redeliver(id) {
      const { guid = '' } = entries.find((entry) => entry.id === id) ?? {}
      asked.push(guid)
      const what = outcome(guid)
      if (what instanceof RelayError) throw what
      if (what === 'arrives') has.add(guid)
      else entries.unshift(sent(100 + asked.length, { guid, ...FAILED }))
    },
  }
  const journal: CatchUpOptions['journal'] = {
    known: (ids) => Promise.resolve(new Set(ids.filter((id) => has.has(id)))),
    keptSince: () => Promise.resolve(-Infinity),
  }
  const options: CatchUpOptions = {
    log,
    journal,
    since: 0,
    place: { get: async () => reached, put: async (id) => void (reached = id) },
    limits: { arrival: 200, logLook: 10 },
    onWait: (why, ms) => waits.push(`${why}: ${Math.round(ms / 1000)}`),
  }
  const run = (more: Partial<CatchUpOptions> = {}) => catchUp({ ...options, ...more })
  return { run, options, has, asked, waits, log, place: () => reached }
}

describe('what is missing', () => {
  it('is each GUID once, in the order in which they were first sent, with the newest id', async () => {
    const guids = fc.array(fc.integer({ min: 0, max: 8 }), { maxLength: 40 })
    const bound = fc.integer({ min: -1, max: 40 })
    await fc.assert(
      fc.asyncProperty(
        guids,
        fc.integer({ min: 1, max: 7 }),
        bound,
        bound,
        async (order, size, since, after) => {
          const entries = order.map((guid, at) => sent(at, { guid: `g${guid}` })).toReversed()
          const page: DeliveryLog['page'] = (cursor = '0') => {
            const from = Number(cursor)
            const next = from + size < entries.length ? String(from + size) : undefined
            return Promise.resolve({ deliveries: entries.slice(from, from + size), next })
          }
          const { options, has, log } = rig()
          has.add('g0')
          const place = { get: async () => BigInt(after), put: async () => {} }
          const found = await findMissed({ ...options, log: { ...log, page }, since, place })
          const recent = order
            .map((guid, at) => ({ guid: `g${guid}`, at }))
            .filter(({ at }) => at >= since && at > after)
          const expected = [...new Set(recent.map(({ guid }) => guid))].filter((guid) => guid !== 'g0')
          const newest = (guid: string): string => String(recent.findLast((each) => each.guid === guid)?.at)
          expect(found.deliveries.map(({ guid, id }) => [guid, id])).toEqual(
            expected.map((guid) => [guid, newest(guid)]),
          )
          expect(found.newest).toBe(BigInt(Math.max(0, order.length - 1)))
        },
      ),
    )
  })

  it('is no ping, and nothing that retention has removed', async () => {
    const { run, asked } = rig(() => 'arrives', [sent(3), sent(2, { event: 'ping' }), sent(1)])
    const known: CatchUpOptions['journal']['known'] = async (ids) =>
      new Set(asked.filter((id) => ids.includes(id)))
    expect(await run({ journal: { known, keptSince: async () => 2 } })).toMatchObject({
      missing: 1,
      arrived: 1,
    })
    expect(asked).toEqual(['g3'])
  })

  it('goes back to the first delivery where the code host names no end of its log', async () => {
    const { logPeriod } = openHost({ name: 'gitea', url: 'https://git.example' })
    expect(await rig().run({ since: Date.now() - logPeriod })).toMatchObject({ missing: 5 })
  })

  it('is compared by ids of 64 bits', async () => {
    const id = 9_223_372_036_854_775_000n
    const { run, place } = rig(() => 'arrives', [sent(2, { id: `${id + 1n}` }), sent(1, { id: `${id}` })])
    expect(await run()).toMatchObject({ missing: 2, arrived: 2 })
    expect([place(), await run()]).toEqual([id + 1n, { missing: 0, arrived: 0, failed: [] }])
  })
})

describe('catching up', () => {
  it('asks for each, oldest first, once the one before has arrived, and never again', async () => {
    const { run, asked, has } = rig()
    has.add('g4')
    expect(await run()).toEqual({ missing: 4, arrived: 4, failed: [] })
    has.clear()
    expect(await run()).toEqual({ missing: 0, arrived: 0, failed: [] })
    expect(asked).toEqual(['g1', 'g2', 'g3', 'g5'])
  })

  it('waits for rate limits, and tries again after failures without a known cause', async () => {
    const faults: Outcome[] = [
      error('rate_limited', 'slow down', 1),
      error('provider_failed', 'it failed (502)'),
    ]
    const { run, waits } = rig(() => faults.shift() ?? 'arrives')
    expect(await run()).toMatchObject({ arrived: 5 })
    expect(waits).toEqual(['slow down: 1', 'it failed (502): 1'])
  })

  it('names what fails again and what is refused, in the words of the code host, and asks for these later', async () => {
    const refused = error('not_found', 'GitHub refused: Not Found')
    const { run, place, asked } = rig((guid) =>
      guid === 'g2' ? 'fails' : guid === 'g4' ? refused : 'arrives',
    )
    expect(await run()).toEqual({
      missing: 5,
      arrived: 3,
      failed: [
        { delivery: sent(2), why: 'the redelivery failed too: Invalid HTTP Response: 500 (500)' },
        { delivery: sent(4), why: 'it was not sent again: GitHub refused: Not Found' },
      ],
    })
    expect(place()).toBe(1n)
    asked.length = 0
    await run()
    expect(asked).toEqual(['g2', 'g4'])
  })

  it('does not ask again for what the code host no longer has', async () => {
    const { run, place, asked } = rig((guid) => (guid === 'g3' ? error('not_found', 'no') : 'arrives'))
    expect(await run()).toMatchObject({ missing: 5, arrived: 4, failed: [{ delivery: sent(3) }] })
    expect(place()).toBe(5n)
    asked.length = 0
    expect(await run()).toEqual({ missing: 0, arrived: 0, failed: [] })
    expect(asked).toEqual([])
  })

  it.each([
    ['unprocessable', 5],
    // That the log has forgotten one says nothing about the next.
    ['not_found', 8],
  ] as const)('stops asking when five in a row do not arrive: %s, %i', async (kind, count) => {
    const many = Array.from({ length: 8 }, (_, n) => sent(8 - n))
    const { run, asked } = rig(() => error(kind, 'no'), many)
    const { failed } = await run()
    expect([asked.length, failed.length]).toEqual([count, 8])
    expect(failed.at(-1)?.why).toBe(
      count === 5 ? 'not asked for, since 5 in a row did not arrive' : 'it was not sent again: no',
    )
  })

  it('does not count what arrives although the log cannot be read meanwhile', async () => {
    const { run, has, log } = rig(() => 'fails', [sent(1)])
    let pages = 0
    const page: DeliveryLog['page'] = async () => {
      if (pages++ === 0) return log.page()
      setTimeout(() => has.add('g1'), 20)
      throw error('not_found', 'Not Found')
    }
    expect(await run({ log: { ...log, page } })).toEqual({ missing: 1, arrived: 1, failed: [] })
    expect(pages).toBeGreaterThan(1)
  })

  it('does not wait for a limit of more than an hour, and ends at once when it is aborted', async () => {
    const late = error('rate_limited', 'slow down', 3601)
    const { run, log } = rig()
    expect(await failure(run({ log: { ...log, page: () => Promise.reject(late) } }))).toBe(late)
    const stop = new AbortController()
    const waiting = rig(() => {
      setTimeout(() => stop.abort(), 5)
      return 'fails'
    })
    const page: DeliveryLog['page'] = async () => ({ deliveries: [sent(1)], next: undefined })
    const aborted = waiting.run({ signal: stop.signal, log: { ...waiting.log, page } })
    expect(await failure(aborted)).toMatchObject({ name: 'AbortError' })
  })

  it('is done by one process at a time, for each log', async () => {
    await using database = await openDatabase({ kind: 'memory', folder: '' })
    const named = { store: database.store, host: { origin: 'https://github.com' }, name: 'octo/Demo' }
    const running: string[] = []
    const said: string[] = []
    const work = (name: string) => async (): Promise<void> => {
      expect(running).toEqual([])
      running.push(name)
      await new Promise((resolve) => setTimeout(resolve, 20))
      running.pop()
    }
    const onBusy = (text: string): void => void said.push(text)
    await Promise.all(['a', 'b'].map((name) => oneCatchUp(named, work(name), { onBusy })))
    expect(said).toEqual([
      `Process ${process.pid} is catching up with octo/Demo already. Waiting until it has finished`,
    ])
    const place = placeIn(named)
    expect(await place.get()).toBe(-1n)
    await place.put(2n ** 63n)
    expect(await placeIn({ ...named, name: 'OCTO/demo' }).get()).toBe(2n ** 63n)
  })

  it('is refused where the code host has no log', () => {
    expect(() => requireLog(HOST_KINDS.gitea)).toThrow(
      "There is nothing to catch up from: gitea shows programs no log of what it sent. From Gitea 1.17 on, and in Forgejo, each delivery can be sent again on the hook's page there",
    )
    expect(() => requireLog(HOST_KINDS.github)).not.toThrow()
  })
})
