import * as fc from 'fast-check'
import { expect, it } from 'vitest'
import { Secret } from '../../src/base/secret.js'
import { ensureHook } from '../../src/hooks/ensure.js'
import { findMissing } from '../../src/hooks/missing.js'
import type { HookDelivery } from '../../src/providers/hooks.js'
import { createProvider } from '../../src/providers/open.js'
import { startSandbox } from '../../src/testing/start-sandbox.js'
import { scriptedServer } from '../helpers/scripted-server.js'

const REPO = { owner: 'octo', repo: 'demo' }

it('finds what a hook could not deliver, on all pages, oldest first, without what arrived', async () => {
  let isAway = false
  await using receiver = await scriptedServer(() => (isAway ? 'reset' : {}))
  await using sandbox = await startSandbox()
  const provider = createProvider({ name: 'sandbox', url: sandbox.url })
  const token = await sandbox.token('repo')
  const settings = { url: receiver.url, secret: new Secret('hush'), events: ['issue_comment'] }
  const { hook } = await ensureHook(provider.hooks, { token, repo: REPO, settings })
  await sandbox.idle()
  for (let n = 0; n < 300; n++) {
    isAway = n >= 40
    await provider.comment(token, { ...REPO, issueNumber: 1, body: String(n) })
    await sandbox.idle()
  }
  isAway = false
  const arrived = new Set(receiver.received.slice(0, 41).map(({ headers }) => headers['x-github-delivery']))
  const asked: number[] = []
  const read = () =>
    findMissing({
      page: (cursor) => provider.hooks.log?.page(token, REPO, hook.id, cursor) ?? Promise.reject(),
      unknown: (guids) => {
        asked.push(guids.length)
        return Promise.resolve(new Set(guids.filter((guid) => !arrived.has(guid))))
      },
      since: 0,
      after: 0n,
    })
  const { deliveries: missing } = await read()
  expect(asked).toEqual([100, 100, 100, 1])
  const before = receiver.received.length
  for (const { id } of missing) {
    await provider.hooks.log?.redeliver(token, REPO, hook.id, id)
    await sandbox.idle()
  }
  const bodies = receiver.received.slice(before).map(({ body }): unknown => JSON.parse(body).comment.body)
  expect(bodies).toEqual(Array.from({ length: 260 }, (_, n) => String(n + 40)))
  for (const { headers } of receiver.received) arrived.add(headers['x-github-delivery'])
  expect((await read()).deliveries).toEqual([])
  sandbox.faults.next('deliveries', 'rate-limit')
  await expect(read()).rejects.toMatchObject({ kind: 'rate_limited' })
})

const sent = (guid: number, at: number): HookDelivery => ({
  id: `${at}`,
  guid: `g${guid}`,
  event: 'push',
  action: null,
  deliveredAt: at,
  redelivery: false,
  statusCode: 502,
  status: 'failed to connect to host',
})

it('names each GUID once, in the order in which they were first sent, with the newest id', async () => {
  const guids = fc.array(fc.integer({ min: 0, max: 8 }), { maxLength: 40 })
  await fc.assert(
    fc.asyncProperty(
      guids,
      fc.integer({ min: 1, max: 7 }),
      fc.integer({ min: 0, max: 40 }),
      fc.integer({ min: -1, max: 40 }),
      async (order, size, since, after) => {
        const log = order.map(sent).toReversed()
        const { deliveries: missing, newest: last } = await findMissing({
          page: (cursor = '0') => {
            const from = Number(cursor)
            const next = from + size < log.length ? String(from + size) : undefined
            return Promise.resolve({ deliveries: log.slice(from, from + size), next })
          },
          unknown: (some) => Promise.resolve(new Set(some.filter((guid) => guid !== 'g0'))),
          since,
          after: BigInt(after),
        })
        const recent = order
          .map((guid, at) => ({ guid: `g${guid}`, at }))
          .filter(({ at }) => at >= since && at > after)
        const expected = [...new Set(recent.map(({ guid }) => guid))].filter((guid) => guid !== 'g0')
        const newest = (guid: string): string => String(recent.findLast((each) => each.guid === guid)?.at)
        expect(missing.map(({ guid, id }) => [guid, id])).toEqual(
          expected.map((guid) => [guid, newest(guid)]),
        )
        expect(last).toBe(BigInt(Math.max(0, order.length - 1)))
      },
    ),
  )
})
