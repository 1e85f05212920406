import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { RelayError } from '../../src/base/errors.js'
import { catchUp, type CatchUpOptions, findMissed } from '../../src/codehost/catch-up.js'
import type { DeliveryLog, HookDelivery } from '../../src/codehost/host.js'
import { Refusal } from '../../src/codehost/refusal.js'
import { openDatabase } from '../../src/store/open.js'

const sent = (n: number, more: Partial<HookDelivery> = {}): HookDelivery => ({
  id: `${n}`,
  guid: `g${n}`,
  event: 'push',
  action: null,
  deliveredAt: n,
  statusCode: 502,
  status: 'failed to connect to host',
  ...more,
})

/** A log of five deliveries, and a journal; `outcome` says what becomes of each that is asked for. */
async function rig(
  outcome: (guid: string) => 'arrives' | 'fails' | RelayError = () => 'arrives',
  entries = [5, 4, 3, 2, 1].map((n) => sent(n)),
) {
  const has = new Set<string>()
  const asked: string[] = []
  const { store } = await openDatabase({ kind: 'memory', folder: '' })
  const log: DeliveryLog = {
    page: async () => ({ deliveries: [...entries], next: undefined }),
    async redeliver(id) {
      const { guid = '' } = entries.find((entry) => entry.id === id) ?? {}
      asked.push(guid)
      const what = outcome(guid)
      if (what instanceof RelayError) throw what
      if (what === 'arrives') has.add(guid)
      else
        entries.unshift(
          sent(100 + asked.length, { guid, statusCode: 500, status: 'Invalid HTTP Response: 500' }),
        )
    },
  }
  const options: CatchUpOptions = {
    log,
    name: 'octo/Demo',
    host: { origin: 'https://github.com', logPeriod: Infinity },
    journal: {
      known: async (ids) => new Map(ids.filter((id) => has.has(id)).map((id) => [id, 1])),
      keptSince: async () => -Infinity,
    },
    store,
    limits: { arrival: 200, logLook: 10 },
  }
  const run = (more: Partial<CatchUpOptions> = {}) => catchUp({ ...options, ...more })
  return { run, options, has, asked, log }
}

it('what is missing is each GUID once, in the order in which they were first sent, with the newest id', async () => {
  const guids = fc.array(fc.integer({ min: 0, max: 8 }), { maxLength: 40 })
  const sizes = fc.integer({ min: 1, max: 7 })
  const bounds = fc.integer({ min: 0, max: 40 })
  await fc.assert(
    fc.asyncProperty(guids, sizes, bounds, fc.boolean(), async (order, size, at, isInstant) => {
      const entries = order.map((guid, id) => sent(id, { guid: `g${guid}` })).toReversed()
      const page: DeliveryLog['page'] = async (cursor = '0') => {
        const from = Number(cursor)
        const next = from + size < entries.length ? String(from + size) : undefined
        return { deliveries: entries.slice(from, from + size), next }
      }
      const { options, has, log } = await rig()
      has.add('g0')
      // The record of what was reached in the log.
      await options.store.put('catch-up:https://github.com octo/demo', String(at))
      const since = isInstant ? at : undefined
      const found = await findMissed({ ...options, log: { ...log, page }, since })
      const recent = order
        .map((guid, id) => ({ guid: `g${guid}`, id }))
        .filter(({ id }) => (isInstant ? id >= at : id > at))
      const expected = [...new Set(recent.map(({ guid }) => guid))].filter((guid) => guid !== 'g0')
      const newest = (guid: string): string => String(recent.findLast((each) => each.guid === guid)?.id)
      expect(found.deliveries.map(({ guid, id }) => [guid, id])).toEqual(
        expected.map((guid) => [guid, newest(guid)]),
      )
      expect(found.newest).toBe(BigInt(Math.max(0, order.length - 1)))
    }),
  )
})

describe('catching up', () => {
  it.each([
    ['unprocessable', 5, 'not asked for, since 5 in a row did not arrive'],
    // That the log has forgotten one says nothing about the next.
    ['not_found', 8, 'it was not sent again: no'],
  ] as const)('stops asking when five in a row do not arrive: %s, %i', async (kind, count, why) => {
    const many = Array.from({ length: 8 }, (_, n) => sent(8 - n))
    const { run, asked } = await rig(() => new RelayError(kind, 'no'), many)
    const { failed } = await run()
    expect([asked.length, failed.length, failed.at(-1)?.why]).toEqual([count, 8, why])
  })

  it('asks again for what a token had no right to ask for', async () => {
    const refusal = new Refusal('not_found', 'no', { providerStatus: 404, missingRight: 'the scope repo' })
    let hasRight = false
    const { run, asked } = await rig(() => (hasRight ? 'arrives' : refusal))
    expect(await run()).toMatchObject({ missing: 5, arrived: 0 })
    hasRight = true
    expect(await run()).toMatchObject({ missing: 5, arrived: 5 })
    expect(asked).toEqual([1, 2, 3, 4, 5, 1, 2, 3, 4, 5].map((n) => `g${n}`))
  })

  it('does not count what arrives although the log cannot be read meanwhile', async () => {
    const { run, has, log } = await rig(() => 'fails', [sent(1)])
    let pages = 0
    const page: DeliveryLog['page'] = async () => {
      if (pages++ === 0) return log.page()
      setTimeout(() => has.add('g1'), 20)
      throw new RelayError('not_found', 'Not Found')
    }
    expect(await run({ log: { ...log, page } })).toEqual({ missing: 1, arrived: 1, failed: [] })
    expect(pages).toBeGreaterThan(1)
  })
})

it('does not ask for what arrives meanwhile', async () => {
  const { run, has, asked } = await rig((guid) => {
    if (guid === 'g1') has.add('g2').add('g4')
    return 'arrives'
  })
  expect(await run()).toEqual({ missing: 5, arrived: 5, failed: [] })
  expect(asked).toEqual(['g1', 'g3', 'g5'])
})
