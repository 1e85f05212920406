import { Hmac, randomUUID } from 'node:crypto'
import * as fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import { anywhere } from '../../src/base/command-line.js'
import { Messages } from '../../src/tunnel/messages.js'
import { RoundTrips } from '../../src/tunnel/round-trip.js'
import { createIntake } from '../../src/webhook/intake.js'
import { Refusals } from '../../src/webhook/refusals.js'
import type { Store } from '../../src/store/kv.js'
import { openDatabase } from '../../src/store/open.js'
import { Changes } from '../kit/changes.js'
import { githubDelivery, SECRET, sign } from '../kit/delivery.js'
import { smee } from '../kit/smee.js'
import { sourceOf, working } from './tunnel-rig.js'

/** How a message is written: as GitHub writes, in a way that only people use, in one that is tried soon, or signed with another secret. */
type Kind = 'likely' | 'unlikely' | 'indented' | 'forged'

/** The event of a server that keeps messages and does not say how long the body was. */
function event(n: number, kind: Kind, size = 0): string {
  const value = { n, text: 'x'.repeat(size) }
  const indents: Partial<Record<Kind, string>> = { unlikely: '\t', indented: '  ' }
  const body = JSON.stringify(value, null, indents[kind])
  const { headers } = githubDelivery({ id: randomUUID(), body })
  const signature = sign(kind === 'forged' ? 'another' : SECRET, body)
  const members = Object.fromEntries(headers.map(([name, one]) => [name.toLowerCase(), one]))
  return `id: 1-${n}\ndata: ${JSON.stringify({ ...members, 'x-hub-signature-256': signature, body: value })}\n\n`
}

/** A tunnel whose deliveries and positions are listed as they are stored. */
async function recorded(channel: string) {
  const { store } = await openDatabase({ kind: 'memory', folder: '' })
  const steps: { readonly stored?: number; readonly position?: number }[] = []
  const changes = new Changes(() => JSON.stringify(steps))
  const add = (step: (typeof steps)[number]): void => {
    steps.push(step)
    changes.changed()
  }
  const recording: Store = Object.assign(Object.create(store), {
    async put(...args: Parameters<Store['put']>) {
      const [key, value] = args
      if (key.startsWith('tunnel-position'))
        add({ position: Number(/"id":"1-(\d+)"/.exec(JSON.stringify(value))?.[1]) })
      return store.put(...args)
    },
  })
  const rig = await working(channel, {
    store: recording,
    append: async ({ body }) => add({ stored: JSON.parse(Buffer.from(body).toString()).n }),
  })
  /** Resolves once this position is stored. */
  const reaches = (position: number): Promise<void> =>
    changes.until(() => steps.some((step) => step.position === position), `position ${position}`)
  return { rig, steps, reaches }
}

const kinds = fc.array(fc.constantFrom<Kind[]>('likely', 'unlikely', 'forged'), {
  minLength: 1,
  maxLength: 40,
})

/** What a stranger writes in no time: a signature that matches nothing, and a number. */
const small = (n: number): string =>
  `data: {"x-hub-signature-256":"sha256=${'0'.repeat(64)}","body":${n}}\n\n`

describe('many small messages that match in no way', () => {
  it('are refused at once and counted, few are listed, and what comes behind is found', async () => {
    await using server = await smee()
    const { rig } = await recorded(server.channel)
    await using _ = rig
    const hashed = vi.spyOn(Hmac.prototype, 'update')
    const count = 5000
    const began = performance.now()
    server.write(`${Array.from({ length: count }, (__, n) => small(n)).join('')}${event(0, 'likely')}`)
    await rig.has(1)
    expect(rig.refused.counts()).toEqual({ invalid_signature: count })
    // Ten in a second, and a busy machine takes some.
    const seconds = Math.ceil((performance.now() - began) / 1000)
    expect(rig.refused.list().length).toBeLessThanOrEqual(10 * (seconds + 1))
    // The first ones are explained, which takes a few dozen hashes.
    expect(hashed.mock.calls.length).toBeLessThan(3 * count)
    hashed.mockRestore()
  })
})

describe('messages that wait', () => {
  it('count more than their characters, however short they are', async () => {
    const source = sourceOf('github', SECRET)
    const sources = new Map([[source.name, source]])
    const log = { debug() {}, info() {}, warn() {}, error() {} }
    const shared = { clock: Date.now, log, maxBody: 1_048_576 }
    const handled: string[] = []
    const messages = new Messages({
      ...source,
      ...shared,
      intake: createIntake({
        ...shared,
        journal: { append: async () => expect.fail() },
        plan: () => expect.fail(),
      }),
      refusals: new Refusals({ command: anywhere, ...shared, sources }),
      maxWaiting: 500_000,
      roundTrips: new RoundTrips(),
      onHandled: async (id) => void handled.push(id),
      signal: new AbortController().signal,
    })
    // A tenth of that in characters.
    for (let n = 0; n < 400; n++) messages.enqueue(small(n).slice(6).trim(), String(n))
    await messages.room()
    expect(handled.length).toBeGreaterThan(0)
    await messages.handled()
    expect(handled.at(-1)).toBe('399')
  })
})

describe('a message that matches in no likely way', () => {
  it('is found while others do not cease to arrive', async () => {
    await using server = await smee()
    let before = Infinity
    const { store } = await openDatabase({ kind: 'memory', folder: '' })
    const rig = await working(server.channel, {
      store,
      append: async () => void (before = rig.refused.counts().invalid_signature ?? 0),
    })
    await using _ = rig
    const count = 30
    const forged = Array.from({ length: count }, (__, n) => event(n + 1, 'forged', 900_000))
    server.write([event(0, 'indented'), ...forged].join(''))
    await rig.has(1)
    expect(before).toBeLessThan(count / 2)
  }, 120_000)

  it('is put off, found, and not passed by the position in the stream', async () => {
    await fc.assert(
      fc.asyncProperty(kinds, async (sent) => {
        await using server = await smee()
        const { rig, steps, reaches } = await recorded(server.channel)
        await using _ = rig
        server.write(sent.map((kind, n) => event(n, kind)).join(''))
        await reaches(sent.length - 1)
        const genuine = sent.flatMap((kind, n) => (kind === 'forged' ? [] : [n]))
        const stored = (upTo = steps.length): number[] =>
          steps.slice(0, upTo).flatMap(({ stored: n }) => n ?? [])
        expect(stored().toSorted((a, b) => a - b)).toEqual(genuine)
        expect(rig.refused.counts()).toEqual(
          sent.includes('forged') ? { invalid_signature: sent.length - genuine.length } : {},
        )
        for (const [at, { position }] of steps.entries()) {
          if (position === undefined) continue
          const missing = genuine.filter((n) => n <= position && !stored(at).includes(n))
          expect([position, missing]).toEqual([position, []])
        }
      }),
      { numRuns: 15 },
    )
  }, 120_000)

  it('comes after those that match in one', async () => {
    await using server = await smee()
    const { rig, steps, reaches } = await recorded(server.channel)
    await using _ = rig
    server.write([event(0, 'unlikely'), event(1, 'forged'), event(2, 'likely'), event(3, 'likely')].join(''))
    await rig.has(3)
    expect(rig.numbers()).toEqual([2, 3, 0])
    await reaches(3)
    expect(steps.at(-1)).toEqual({ position: 3 })
    // From now on that way is likely too.
    server.write([event(4, 'unlikely'), event(5, 'likely')].join(''))
    await rig.has(5)
    expect(rig.numbers()).toEqual([2, 3, 0, 4, 5])
  })

  it('is refused with the reason where too many wait, and those that wait are found', async () => {
    await using server = await smee()
    const { rig } = await recorded(server.channel)
    await using _ = rig
    const forged = Array.from({ length: 10 }, (_, n) => event(n + 1, 'forged', 900_000))
    server.write([event(0, 'unlikely'), ...forged, event(11, 'likely')].join(''))
    await rig.has(2)
    await expect.poll(() => rig.refused.counts(), { timeout: 60_000 }).toEqual({ invalid_signature: 10 })
    expect(new Set(rig.numbers())).toEqual(new Set([0, 11]))
    const reasons = await Promise.all(rig.refused.list().map(({ reason }) => reason()))
    const ofMany = reasons.filter((reason) => reason.includes('too many such messages wait'))
    expect(ofMany.length).toBeGreaterThan(0)
    expect(ofMany.length).toBeLessThan(10)
  }, 120_000)

  it('is found although it is alone larger than all that may wait', async () => {
    await using server = await smee()
    const { store } = await openDatabase({ kind: 'memory', folder: '' })
    await using rig = await working(server.channel, { store, maxBody: 8_388_608 })
    server.write(event(0, 'unlikely', 5_000_000))
    await rig.has(1)
    expect(rig.numbers()).toEqual([0])
  }, 120_000)
})
