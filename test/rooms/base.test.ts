import { statSync } from 'node:fs'
import path from 'node:path'
import { inspect } from 'node:util'
import * as fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { formPayload } from '../../src/base/bytes.js'
import { type Log, silentLog, createLogThrottle } from '../../src/base/log.js'
import { makeFolder } from '../../src/base/make-folder.js'
import { parseUrl } from '../../src/base/address.js'
import { Secret } from '../../src/base/secret.js'
import { SharedStore, splitPassword } from '../../src/base/shared-store.js'
import { emptyFolder } from '../kit/folder.js'
import { describeWith } from '../kit/needs.js'

const payload = (body: string): string | undefined => {
  const decoded = formPayload(Buffer.from(body, 'latin1'))
  return decoded && Buffer.from(decoded).toString('utf8')
}

describe('formPayload', () => {
  it.each([
    ['payload=%7B%22a%22%3A1%7D', '{"a":1}'],
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
  ])('reads %s', (body, text) => {
    expect(payload(body)).toBe(text)
  })

  it.each([
    ['nothing', ''],
    ['no payload', 'a=1&b=2'],
    ['a payload of other case', 'Payload=1'],
    ['two payloads', 'payload=1&payload=1'],
    ['two payloads, one in disguise', 'payload=1&%70ayload=2'],
    ['bytes that are not UTF-8', 'payload=\u00ff'],
    ['an escape of such', 'payload=%ff'],
    ['a cut escape', 'payload=%4'],
    ['a bare percent', 'payload=100%'],
    ['an escape that is none', 'payload=%g1'],
    ['an escape half of which is none', 'payload=%1g'],
    ['a sign in an escape', 'payload=%+1'],
    ['more than 100 fields', `${'&'.repeat(100)}payload=1`],
  ])('refuses %s', (_, body) => {
    expect(payload(body)).toBeUndefined()
  })

  it('reads the last of 100 fields', () => {
    expect(payload(`${'a&'.repeat(99)}payload=1`)).toBe('1')
  })

  it('is quick with a megabyte of separators', () => {
    const start = performance.now()
    expect(payload('&'.repeat(1_048_576))).toBeUndefined()
    expect(performance.now() - start).toBeLessThan(100)
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

it('reads a payload of any length', () => {
  const text = payload(`payload=${'a%20+%C3%A9'.repeat(300_000)}`)
  expect(text === 'a  é'.repeat(300_000)).toBe(true)
})

it.each([
  ['http://a.example/b', undefined, 'http://a.example/b'],
  ['/c?d', 'http://a.example/b', 'http://a.example/c?d'],
  ['/c', undefined, undefined],
  ['', undefined, undefined],
  ['http://', undefined, undefined],
  ['http://a.example:65536', undefined, undefined],
])('reads %j from %j', (text, base, href) => {
  expect(parseUrl(text, base)?.href).toBe(href)
})

describe('the address of a shared store', () => {
  it.each([
    [
      'postgres://u@db.example/relay',
      { host: 'db.example', port: 5432, user: 'u', database: 'relay', sslMode: 'verify-full' },
    ],
    [
      'postgresql://a%40b@127.0.0.1:6000/x%20y',
      { host: '127.0.0.1', port: 6000, user: 'a@b', database: 'x y', sslMode: 'disable' },
    ],
    ['postgres://u@[::1]/d', { host: '::1', sslMode: 'disable' }],
    ['postgres://u@%2Fvar%2Frun%2Fpostgresql/d', { host: '/var/run/postgresql', sslMode: 'disable' }],
    ['postgres://u@localhost/d?sslmode=verify-full', { sslMode: 'verify-full' }],
    [
      'postgres://u@db/d?sslmode=verify-full&sslrootcert=/etc/ca.pem',
      { sslMode: 'verify-full', sslRootCert: '/etc/ca.pem' },
    ],
    ['postgres://u@db/d?sslmode=require', { sslMode: 'require' }],
    ['postgres://u@db/d?sslmode=verify-ca&sslrootcert=ca.pem', { sslMode: 'verify-ca' }],
  ])('%s', (address, parts) => {
    const store = new SharedStore(address)
    expect(store).toMatchObject(parts)
    expect(String(store)).toBe(address)
    expect(JSON.stringify({ store })).toBe(JSON.stringify({ store: address }))
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
    expect(splitPassword('postgres://u:p%40ss@db/d')).toEqual({
      address: 'postgres://u@db/d',
      password: 'p@ss',
    })
    expect(splitPassword('postgres://u@db/d')).toEqual({ address: 'postgres://u@db/d', password: '' })
    const secrets = { password: new Secret('canary'), keys: { current: new Secret('canary') } }
    const store = new SharedStore('postgres://u@db/d', secrets)
    expect(inspect(store, { depth: 9 }) + JSON.stringify(store) + String(store)).not.toContain('canary')
  })
})

function setUp() {
  const lines: string[] = []
  const log: Log = { ...silentLog, warn: (line) => lines.push(`warn ${line}`) }
  const throttle = createLogThrottle(log)
  return {
    throttle,
    /** Has a line of the kind logged so many times. */
    trigger: (kind: string, times = 1) => {
      for (let i = 0; i < times; i++) throttle(kind, () => log.warn(`${kind} from ${i}`))
    },
    /** What was logged since last asked. */
    lines: () => lines.splice(0),
  }
}

describe('lines that an outsider can trigger', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] }))
  afterEach(() => void vi.useRealTimers())

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

describeWith('Linux', 'makeFolder', () => {
  it('makes a folder and those above it, for their owner alone; one that is there stays', () => {
    const folder = path.join(emptyFolder(), 'a', 'b')
    makeFolder(folder)
    makeFolder(folder)
    expect([folder, path.dirname(folder)].map((each) => statSync(each).mode & 0o777)).toEqual([0o700, 0o700])
  })
})
