import { parseSpoken } from '../../src/base/time.js'
import { inspect } from 'node:util'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import * as fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { formPayload } from '../../src/http/forms.js'
import { type Log, silentLog, createLogThrottle } from '../../src/base/log.js'
import { Secret } from '../../src/base/secret.js'
import { SharedStore, splitPassword } from '../../src/base/shared-store.js'
import { deadline, nearbyProbeDelay, onSleep, probeDelay, sleep } from '../../src/base/wait.js'

afterEach(() => void vi.useRealTimers())

/** The payload of a form, as text. */
const payload = (body: string): string | undefined => {
  const decoded = formPayload(Buffer.from(body, 'latin1'))
  return decoded && Buffer.from(decoded).toString('utf8')
}

describe('formPayload', () => {
  it.each([
    ['payload={"a":1}', '{"a":1}'],
    ['payload=a+b%2Bc%20d', 'a b+c d'],
    ['payload=%c3%A9', 'é'],
    ['payload=', ''],
    ['payload', ''],
    ['pay%6Coad=a', 'a'],
    ['x=\u00ff&payload=%c3%a9', 'é'],
    ['payload=a=b', 'a=b'],
    ['x=1&payload=a&y', 'a'],
    ['&&payload=a&', 'a'],
    ['bad=%zz&payload=a', 'a'],
    [`${'a&'.repeat(99)}payload=1`, '1'],
    ['', undefined],
    ['a=1&b=2', undefined],
    ['Payload=1', undefined],
    ['payload=1&payload=1', undefined],
    ['payload=1&%70ayload=2', undefined],
    ['payload=\u00ff', undefined],
    ['payload=%ff', undefined],
    ['payload=%4', undefined],
    ['payload=100%', undefined],
    ['payload=%g1', undefined],
    ['payload=%1g', undefined],
    ['payload=%+1', undefined],
    [`${'&'.repeat(100)}payload=1`, undefined],
  ])('%s: %j', (body, text) => {
    expect(payload(body)).toBe(text)
  })

  it('reads a payload of any length', () => {
    const text = payload(`payload=${'a%20+%C3%A9'.repeat(300_000)}`)
    expect(text === 'a  é'.repeat(300_000)).toBe(true)
  })

  it('gives back what URLSearchParams encoded', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), (text) => {
        const wellFormed = Buffer.from(text).toString()
        expect(payload(new URLSearchParams({ a: '1', payload: wellFormed }).toString())).toBe(wellFormed)
      }),
    )
  })
})

describe('the address of a shared store', () => {
  const atDb = { host: 'db', port: 5432, user: 'u', database: 'd', sslMode: 'verify-full' }

  it.each<[address: string, parts: object]>([
    ['postgres://u@db/d', atDb],
    ['postgresql://a%40b@db:6000/x%20y', { ...atDb, port: 6000, user: 'a@b', database: 'x y' }],
    ['postgres://u@[::1]/d', { ...atDb, host: '::1', sslMode: 'disable' }],
    ['postgres://u@%2Frun%2Fpg/d', { ...atDb, host: '/run/pg', sslMode: 'disable' }],
    [
      'postgres://u@db/d?sslmode=verify-ca&sslrootcert=c',
      { ...atDb, sslMode: 'verify-ca', sslRootCert: 'c' },
    ],
  ])('%s', (address, parts) => {
    const store = new SharedStore(address)
    expect(store).toMatchObject(parts)
    expect([String(store), JSON.stringify({ store })]).toEqual([address, JSON.stringify({ store: address })])
  })

  it.each([
    ['postgres://u:pass@db/d', /no password/],
    ['postgres://db/d', /has no user/],
    ['postgres://u@db', /has no database/],
    ['postgres://u@db/a/b', /has no database/],
    ['postgres://u@db/d?sslmode=allow', /one of disable, require, verify-ca, verify-full/],
    ['postgres://u@db/d?sslmode=verify-ca', /needs sslrootcert=FILE/],
    ['postgres://u@db/d?host=x', /only parameters/],
    ['mysql://u@db/d', /cannot be read/],
    ['postgres://u@db:x/d', /cannot be read/],
  ])('%s is refused', (address, why) => {
    expect(() => new SharedStore(address)).toThrow(why)
  })

  it('gives up its password, and shows no secret', () => {
    const address = 'postgres://u@db/d'
    expect(splitPassword('postgres://u:p%40ss@db/d')).toEqual({ address, password: 'p@ss' })
    expect(splitPassword(address)).toEqual({ address, password: '' })
    const secrets = { password: new Secret('canary'), keys: { current: new Secret('canary') } }
    const store = new SharedStore(address, secrets)
    expect(inspect(store, { depth: 9 }) + JSON.stringify(store) + String(store)).not.toContain('canary')
  })
})

describe('lines that an outsider can trigger', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] }))

  function setUp() {
    const logged: string[] = []
    const log: Log = { ...silentLog, warn: (line) => logged.push(`warn ${line}`) }
    const throttle = createLogThrottle(log)
    /** Has a line of the kind logged so many times. */
    const trigger = (kind: string, times = 1): void => {
      for (let i = 0; i < times; i++) throttle(kind, () => log.warn(`${kind} from ${i}`))
    }
    /** What was logged since last asked. */
    const lines = (): string[] => logged.splice(0)
    return { throttle, trigger, lines }
  }

  it('are one at once, and one a second with a count of the others, until a second passes without any', () => {
    const { trigger, lines } = setUp()
    trigger('answered 503', 18_000)
    expect(lines()).toEqual(['warn answered 503 from 0'])
    vi.advanceTimersByTime(1000)
    expect(lines()).toEqual(['warn answered 503 … and 17,999 more like it in the last second'])
    trigger('answered 503')
    vi.advanceTimersByTime(999)
    expect(lines()).toEqual([])
    vi.advanceTimersByTime(1)
    expect(lines()).toEqual(['warn answered 503 … and 1 more like it in the last second'])
    vi.advanceTimersByTime(5000)
    expect(lines()).toEqual([])
    trigger('answered 503')
    expect(lines()).toEqual(['warn answered 503 from 0'])
    expect(vi.getTimerCount()).toBe(1)
  })

  it('are counted by kind and by level', () => {
    const { throttle, trigger, lines } = setUp()
    throttle('a', () => {}, 'debug')
    trigger('a', 2)
    trigger('b')
    expect(lines()).toEqual(['warn a from 0', 'warn b from 0'])
    vi.advanceTimersByTime(1000)
    expect(lines()).toEqual(['warn a … and 1 more like it in the last second'])
  })

  it('are bounded in memory: kinds after the 64th share a count', () => {
    const { trigger, lines } = setUp()
    for (let i = 0; i < 1000; i++) trigger(`kind ${i}`)
    expect(lines()).toHaveLength(65)
    expect(vi.getTimerCount()).toBe(65)
    vi.advanceTimersByTime(1000)
    expect(lines()).toEqual(['warn other lines … and 935 more like it in the last second'])
    trigger('kind 999')
    expect(lines()).toEqual(['warn kind 999 from 0'])
  })
})

it('a deadline fires although only its listener refers to it and garbage is collected', async () => {
  setFlagsFromString('--expose-gc')
  const collect: () => void = runInNewContext('gc')
  const caller = new AbortController()
  const fired = new Promise((resolve) => {
    deadline(200, caller.signal).addEventListener('abort', resolve)
  })
  for (let round = 0; round < 5; round++) {
    await sleep(10)
    collect()
  }
  // Or the time of the test ends.
  expect(await fired).toMatchObject({ type: 'abort' })
})

it('the wait for a target that is down doubles from a second to a minute, and varies by a fifth', () => {
  const delays = Array.from({ length: 9 }, (_, i) => probeDelay(i + 1, () => 0.5))
  expect(delays).toEqual([1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000, 60_000])
  expect([probeDelay(1, () => 0), probeDelay(5000, () => 1)]).toEqual([800, 72_000])
  const nearby = [0, 59_999, 60_000, 86_400_000].map((downFor) => nearbyProbeDelay(downFor, () => 0.5))
  expect(nearby).toEqual([1000, 1000, 5000, 5000])
})

it('a sleep is a jump of the clock, however the clock is set back, and no timer that comes late', () => {
  vi.useFakeTimers({ now: 0 })
  let woke = 0
  const end = onSleep(() => woke++, { every: 10_000, gap: 60_000 })
  const after = (jump: number): number => {
    vi.setSystemTime(Date.now() + jump)
    vi.advanceTimersByTime(10_000)
    return woke
  }
  expect([0, 50_000, -3_600_000, 0, 3_600_000, 0].map(after)).toEqual([0, 0, 0, 0, 1, 1])
  end()
  expect(after(3_600_000)).toBe(1)
})

describe('an instant as people say it', () => {
  // A Wednesday.
  const now = new Date(2026, 10, 25, 15, 30, 10).getTime()
  const at = (day: number, ...time: number[]) => new Date(2026, 10, day, ...time).getTime()

  it.each<[string, number]>([
    ['today', at(25, 0)],
    ['Yesterday', at(24, 0)],
    ['wednesday', at(25, 0)],
    ['tue', at(24, 0)],
    ['thursday', at(19, 0)],
    ['yesterday 14:00', at(24, 14)],
    ['monday 9:05:07', at(23, 9, 5, 7)],
    ['15:30', at(25, 15, 30)],
    ['16:00', at(24, 16)],
    ['2 hours ago', now - 7_200_000],
    ['1 min', now - 60_000],
    ['3 days ago', now - 3 * 86_400_000],
  ])('%s', (text, instant) => {
    expect(parseSpoken(text, now)).toBe(instant)
  })

  it.each([
    '',
    ' ',
    'tomorrow',
    'now',
    'someday',
    'mo',
    'yesterday 25:00',
    '12:60',
    'yesterday12:00',
    '1 fortnight',
    'ago',
  ])('%j is none', (text) => expect(parseSpoken(text, now)).toBeUndefined())

  it('is a day also where the clocks change', () => {
    for (let day = 1; day < 366; day++) {
      const noon = new Date(2026, 0, day, 12)
      const midnight = new Date(parseSpoken('yesterday', noon.getTime()) ?? 0)
      expect([midnight.getHours(), midnight.getDate()]).toEqual([0, new Date(2026, 0, day - 1).getDate()])
    }
  })
})
