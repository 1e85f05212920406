import { Hmac } from 'node:crypto'
import * as fc from 'fast-check'
import { afterAll, describe, expect, it, vi } from 'vitest'
import { Secret } from '../../src/base/secret.js'
import { schemeOf } from '../../src/senders/senders.js'
import { indexHeaders } from '../../src/http/headers.js'
import { waysOf } from '../../src/senders/encodings.js'
import { type EncodingHints, restore, restoreLikely } from '../../src/senders/restore.js'
import { SECRET, sign } from '../kit/delivery.js'

/** Counts what is hashed, and the bytes of text that is written or read for it. */
const update = vi.spyOn(Hmac.prototype, 'update')
const copied = [
  vi.spyOn(Buffer, 'from'),
  vi.spyOn(Buffer, 'allocUnsafe'),
  vi.spyOn(globalThis, 'encodeURIComponent'),
]
afterAll(() => {
  for (const spy of [update, ...copied]) spy.mockRestore()
})

/** Bytes that were written since the spies were cleared. */
function bytesWritten(): number {
  const results = copied.flatMap((spy) => spy.mock.results.map(({ value: one }): unknown => one))
  return sum(results.map((one) => (typeof one === 'string' || Buffer.isBuffer(one) ? one.length : 0)))
}

const MAX = 16_777_216
const OPTIONS = { secrets: { current: new Secret(SECRET) }, scheme: schemeOf('github'), maxBody: MAX }
const JSON_TYPE = 'application/json'
const FORM_TYPE = 'application/x-www-form-urlencoded'

/** What a body without proof costs: of how many bytes each hash is. */
async function costOf(
  value: unknown,
  likely?: { readonly length: number } & Partial<EncodingHints>,
  type = JSON_TYPE,
  length = NaN,
) {
  const lines = indexHeaders([
    ['content-type', type],
    ['x-hub-signature-256', sign('another', '')],
  ])
  for (const spy of [update, ...copied]) spy.mockClear()
  const message = { value, length: likely?.length ?? length }
  const found = likely
    ? (await restoreLikely(message, lines, OPTIONS, { last: 'tab-newline', ...likely })).restored
    : await restore(message, lines, OPTIONS)
  expect(found).toBeUndefined()
  return update.mock.calls.map(([data]) => Buffer.byteLength(data))
}

/** Bytes of `payload=`. */
const FIELD = 8

const sum = (sizes: readonly number[]): number => sizes.reduce((all, size) => all + size, 0)
const sizeOf = (value: unknown): number => Buffer.byteLength(JSON.stringify(value))

/** Text that every program escapes in its own way, and what is laid out in several. */
const ODD = [{}, [], { id: 1, login: 'a', username: 'a' }, '<&>/\u2028\ufffdé\u007f\b\u001f']
const unit = fc.constantFrom(
  '<',
  '/',
  '\u2028',
  '\ufffd',
  'é',
  '世',
  '😀',
  '\u007f',
  '\b',
  '\u001f',
  'x',
  '"',
)
/** One of these again and again, with all others: of any size up to some megabytes, and however it is nested. */
const large = fc
  .tuple(fc.array(unit, { minLength: 1, maxLength: 4 }), fc.integer({ min: 1, max: 200_000 }), fc.nat(900))
  .map(([units, count, depth]): unknown => {
    let value: unknown = [...ODD, units.join('').repeat(count / units.length)]
    for (let level = 0; level < depth; level++) value = level % 2 === 0 ? [value] : { a: value }
    return value
  })
const many = fc
  .tuple(fc.constantFrom<unknown>({}, [], 1, 'a', ODD[2], '<'), fc.integer({ min: 1, max: 50_000 }))
  .map(([one, count]): unknown => [...ODD, ...Array.from({ length: count }, () => one)])
const value = fc.oneof(large, many, fc.jsonValue({ stringUnit: unit }))
const type = fc.constantFrom(JSON_TYPE, JSON_TYPE, FORM_TYPE)

describe('what a body without proof costs', () => {
  it('is at most three times what a flat object of its size costs', async () => {
    const crafted = [...ODD, '\b'.repeat(450_000)]
    const all = [
      crafted,
      [...ODD, '/'.repeat(900_000)],
      [...ODD, 'é'.repeat(450_000)],
      [...ODD, '<'.repeat(900_000)],
    ]
    for (const each of all) {
      const flat = await costOf({ a: 'x'.repeat(sizeOf(each)) })
      expect(sum(await costOf(each))).toBeLessThan(3 * sum(flat))
    }
  })

  it.each(
    ["'", 'é', '~*', "'é ", '😀'].flatMap((text) => [
      [text, 'the text of its payload', (long: string): unknown => ({ payload: long })] as const,
      [text, 'its JSON', (long: string): unknown => ({ a: long })] as const,
    ]),
  )('is at most three times that in a form of %j, as %s, likely or not', async (text, _, make) => {
    const one = make(text.repeat(900_000 / Buffer.byteLength(text)))
    const flat = { a: 'x'.repeat(sizeOf(one)) }
    for (const likely of [undefined, { length: NaN, last: undefined }]) {
      const [most, mostWritten] = [sum(await costOf(flat, likely)), bytesWritten()]
      expect(sum(await costOf(one, likely, FORM_TYPE))).toBeLessThanOrEqual(3 * most + FIELD)
      // The text in it is encoded first.
      expect(bytesWritten()).toBeLessThanOrEqual(3 * mostWritten + sizeOf(one))
    }
  })

  it('is no writing of a form that is larger than the limit', async () => {
    const payload = "'".repeat(MAX / 2)
    const lines = indexHeaders([
      ['content-type', FORM_TYPE],
      ['x-hub-signature-256', sign('another', '')],
    ])
    for (const spy of [update, ...copied]) spy.mockClear()
    const restored = restore({ value: { payload } }, lines, { ...OPTIONS, maxBody: 1_048_576 })
    await expect(restored).rejects.toMatchObject({ kind: 'too_large' })
    // The text is encoded once.
    expect([bytesWritten(), update.mock.calls]).toEqual([payload.length, []])
  })

  it.each([5, 'x', true, null])(
    'is two or three hashes for %j, and nothing is left for later',
    async (one) => {
      const lines = indexHeaders([['x-hub-signature-256', sign('another', '')]])
      update.mockClear()
      const likely = { last: undefined }
      expect(await restoreLikely({ value: one }, lines, OPTIONS, likely)).toEqual({ isAll: true })
      expect(update.mock.calls.length).toBeLessThanOrEqual(3)
    },
  )

  it('is in proportion to its size, whatever it holds', async () => {
    await fc.assert(
      fc.asyncProperty(value, type, fc.option(fc.nat(60), { nil: NaN }), async (one, sent, more) => {
        const size = sizeOf(one)
        const hashed = await costOf(one, undefined, sent, size + more)
        const most = Math.max(24 * size, 262_144) + Math.max(8 * (size + 60), 262_144)
        // How long users in one line are is not known before they are written: the last one may be longer.
        expect(sum(hashed.slice(0, -1))).toBeLessThanOrEqual(most)
        expect(hashed.length).toBeLessThanOrEqual(44 + 48)
      }),
      { numRuns: 60 },
    )
  }, 120_000)

  it('is a few hashes while others wait, whatever length it claims', async () => {
    await fc.assert(
      fc.asyncProperty(value, fc.nat(60), type, async (one, at, sent) => {
        const sizes = [...waysOf(one)].map(({ size }) => size)
        const length = sizes[at % sizes.length] ?? NaN
        const hashed = await costOf(one, { length }, sent)
        expect(hashed.length).toBeLessThanOrEqual(8)
        expect(sum(hashed)).toBeLessThanOrEqual(Math.max(24 * sizeOf(one), 262_144))
      }),
      { numRuns: 60 },
    )
  }, 120_000)

  it('is known before it is written, but for users in one line', () => {
    fc.assert(
      fc.property(value, (one) => {
        for (const { size, isExact, write } of waysOf(one)) {
          if (size > MAX) continue
          const { length } = write()
          expect([length >= size, isExact && length > size]).toEqual([true, false])
        }
      }),
      { numRuns: 60 },
    )
  }, 120_000)
})
