import { Hmac } from 'node:crypto'
import * as fc from 'fast-check'
import { afterAll, describe, expect, it, vi } from 'vitest'
import { Secret } from '../../src/base/secret.js'
import { schemeOf } from '../../src/codehost/schemes.js'
import { indexHeaders } from '../../src/http/headers.js'
import { waysOf } from '../../src/webhook/encodings.js'
import { restore, restoreLikely } from '../../src/webhook/restore.js'
import { SECRET, sign } from '../kit/delivery.js'

/** Counts what is hashed. */
const update = vi.spyOn(Hmac.prototype, 'update')
afterAll(() => update.mockRestore())

const MAX = 16_777_216
const OPTIONS = { secrets: { current: new Secret(SECRET) }, scheme: schemeOf('github'), maxBody: MAX }
const JSON_TYPE = 'application/json'
const FORM_TYPE = 'application/x-www-form-urlencoded'

/** What a body without proof costs: of how many bytes each hash is. */
async function costOf(value: unknown, likely?: { readonly length: number }, type = JSON_TYPE) {
  const lines = indexHeaders([
    ['content-type', type],
    ['x-hub-signature-256', sign('another', '')],
  ])
  update.mockClear()
  const found = likely
    ? (await restoreLikely({ value }, lines, OPTIONS, { ...likely, last: 'tab-newline' })).restored
    : await restore({ value }, lines, OPTIONS)
  expect(found).toBeUndefined()
  return update.mock.calls.map(([data]) => Buffer.byteLength(data))
}

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

  it('is in proportion to its size, whatever it holds', async () => {
    await fc.assert(
      fc.asyncProperty(value, type, async (one, sent) => {
        const hashed = await costOf(one, undefined, sent)
        // How long users in one line and forms are is not known before they are written: the last one may be longer.
        expect(sum(hashed.slice(0, -1))).toBeLessThanOrEqual(Math.max(24 * sizeOf(one), 262_144))
        expect(hashed.length).toBeLessThanOrEqual(44)
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
        expect(hashed.length).toBeLessThanOrEqual(6)
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
