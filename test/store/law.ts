import {
  array,
  assert,
  asyncProperty,
  constant,
  constantFrom,
  integer,
  json,
  oneof,
  option,
  tuple,
} from 'fast-check'
import { expect, it } from 'vitest'
import type { Json, Operation } from '../../src/store/contract.js'
import type { Open } from './contract.js'
import { Model } from './model.js'

type Subject = Pick<Model, 'put' | 'putIfAbsent' | 'take' | 'delete' | 'list' | 'write' | 'sweep'>
/** One call, to be made on the store and on the model, whose clock is that of both. */
type Step = (subject: Subject, clock: Model) => Promise<unknown>

/** Few keys, so that they meet; alike, so that bytes and prefixes matter. */
const key = constantFrom(
  'a',
  'a\u0002',
  'aa',
  'a\u0001',
  'a\u0002\u0001',
  'a\uffff',
  'a😀',
  'a😁',
  'b',
  '__proto__',
  'é',
  'e\u0301',
)
const prefix = constantFrom('', 'a', 'a😀', 'a\u0002', 'a\u0001', '_', 'z')
/** Some that come up again, for expectations. Through JSON, which knows no -0. */
const value = oneof(
  constantFrom<Json[]>(1, 'one', null, { one: [1] }),
  json().map((text): Json => JSON.parse(JSON.stringify(JSON.parse(text)))),
)
const instant = oneof(
  { weight: 6, arbitrary: integer({ min: 0, max: 60 }) },
  constantFrom(NaN, Infinity, -Infinity),
)
const expiry = option(instant, { nil: undefined }).map((expiresAt) => ({ expiresAt }))

const operation = oneof(
  tuple(key, value, expiry).map(([key, value, expiry]): Operation => ({
    type: 'put',
    key,
    value,
    ...expiry,
  })),
  key.map((key): Operation => ({ type: 'delete', key })),
)
const expectation = tuple(key, option(value, { nil: undefined })).map(([key, value]) => ({ key, value }))

const step = oneof(
  tuple(key, value, expiry).map(
    ([key, value, expiry]): Step =>
      (it) =>
        it.put(key, value, expiry),
  ),
  tuple(key, value, expiry).map(
    ([key, value, expiry]): Step =>
      (it) =>
        it.putIfAbsent(key, value, expiry),
  ),
  tuple(array(operation, { maxLength: 4 }), array(expectation, { maxLength: 2 })).map(
    ([operations, expected]): Step =>
      (it) =>
        it.write(operations, expected),
  ),
  key.map(
    (key): Step =>
      (it) =>
        it.take(key),
  ),
  key.map(
    (key): Step =>
      (it) =>
        it.delete(key),
  ),
  prefix.map(
    (prefix): Step =>
      (it) =>
        it.list(prefix),
  ),
  constant<Step>((it) => it.sweep()),
  integer({ min: 1, max: 5 }).map((pass): Step => async (_, clock) => {
    clock.now += pass
  }),
)

/** The law all else follows from. */
export function describeLaw(open: Open, numRuns = 100): void {
  it('answers as the model does, whatever is done in whatever order', async () => {
    await assert(
      asyncProperty(array(step, { maxLength: 40 }), async (steps) => {
        const model = new Model()
        await using database = await open(() => model.now)
        for (const step of steps) {
          expect(await step(database.store, model)).toEqual(await step(model, model))
        }
        const keys = await database.store.list('')
        expect(keys).toEqual(await model.list(''))
        for (const key of keys) expect(await database.store.get(key)).toEqual(await model.get(key))
      }),
      { numRuns },
    )
  })
}
