import { afterEach, expect, it, vi } from 'vitest'
import type { LiveEvent } from '../../src/inspector/api.js'
import { LiveHub } from '../../src/inspector/live.js'
import type { InspectorParts } from '../../src/inspector/parts.js'
import { Routing } from '../../src/dispatch/routing.js'

afterEach(() => vi.useRealTimers())

/** A hub over a journal that has every entry, or fails; and a page that reads it. */
function openHub() {
  const journal = {
    fails: false,
    reads: 0,
    async summaries(numbers: readonly number[]) {
      this.reads++
      if (this.fails) throw new Error('the disk is away')
      return numbers.map((n) => ({ n, headers: [], forwards: {}, number: null, restored: undefined }))
    },
    lastAttempts: async () => [],
  }
  const parts = {
    journal,
    routing: new Routing({ forward: [], exec: [], ignore: [] }),
    instance: { activity: () => ({ targets: [] }) },
    refusals: { list: { counts: () => ({ invalid_signature: 2, too_large: 1 }) } },
    stopped: new AbortController().signal,
    log: { warn() {} },
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- only what a hub uses
  const hub = new LiveHub(parts as unknown as InspectorParts)
  const page = { mayRead: true, isOpen: async () => page.mayRead, outgoing: undefined }
  const reader = hub.open(page).body?.getReader()
  /** The events of the next frame. */
  const next = async (): Promise<LiveEvent[]> => {
    const { value } = (await reader?.read()) ?? {}
    const messages = String(Buffer.from(value ?? [])).split('\n\n')
    return messages.filter(Boolean).map((text) => JSON.parse(text.replace('data: ', '')))
  }
  return { hub, journal, page, reader, next }
}

it('reads at most 200 entries at once, and says that more are stale', async () => {
  const { hub, journal, next } = openHub()
  expect(await next()).toEqual([{ type: 'refused', count: 3 }])
  const change = (count: number): void => {
    for (let n = count; n > 0; n--) for (let i = 0; i < 2; i++) hub.changed({ type: 'changed', n })
  }
  change(200)
  const [event] = await next()
  const numbers = event?.type === 'lines' ? event.lines.map(({ n }) => n) : []
  expect(numbers).toEqual(Array.from({ length: 200 }, (_, i) => i + 1))
  change(201)
  expect(await next()).toEqual([{ type: 'stale' }])
  expect(journal.reads).toBe(1)
})

it('sends all that has changed in one frame', async () => {
  const { hub, next } = openHub()
  await next()
  for (const type of ['refused', 'state'] as const) hub.changed({ type })
  hub.changed({ type: 'removed', oldest: 7 })
  hub.changed({ type: 'changed', n: 9 })
  hub.changed({ type: 'state' })
  expect(await next()).toMatchObject([
    { type: 'lines', lines: [{ n: 9 }] },
    { type: 'refused', count: 3 },
    { type: 'state' },
    { type: 'removed', below: 7 },
  ])
})

it('says that all is stale, with the next change, after the journal could not be read', async () => {
  const { hub, journal, next } = openHub()
  await next()
  journal.fails = true
  hub.changed({ type: 'changed', n: 1 })
  await expect.poll(() => journal.reads).toBe(1)
  journal.fails = false
  // Without a change nothing is read again: a disk that fails would be asked ten times a second.
  hub.changed({ type: 'state' })
  expect(await next()).toEqual([{ type: 'stale' }, { type: 'state' }])
})

it('sends a sign of life every 15 seconds, until the page may no longer read', async () => {
  vi.useFakeTimers()
  const { page, reader, next } = openHub()
  await next()
  await vi.advanceTimersByTimeAsync(15_000)
  expect(await reader?.read()).toEqual({ done: false, value: Buffer.from(':\n\n') })
  page.mayRead = false
  await vi.advanceTimersByTimeAsync(15_000)
  expect(await reader?.read()).toEqual({ done: true, value: undefined })
})
