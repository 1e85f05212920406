import { execFileSync } from 'node:child_process'
import { mkdirSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { Readable } from 'node:stream'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { RelayError } from '../../src/base/errors.js'
import type { Header } from '../../src/journal/delivery.js'
import { type Fixture, fixtureBody, fixtureLines, fixtureText, toFixture } from '../../src/journal/fixture.js'
import { passedOn } from '../../src/journal/headers.js'
import {
  findFixtures,
  type FoundFixture,
  type LoadOptions,
  loadFixtures,
  type NamedFixture,
  parseFixture,
} from '../../src/journal/load-fixture.js'
import { emptyFolder } from '../helpers/context.js'
import { delivery } from './rig.js'

const FIXTURE: Fixture = {
  relay: 1,
  provider: 'github',
  event: 'push',
  delivery: 'id-1',
  headers: { 'X-GitHub-Event': 'push' },
  body: '{}\r\n',
}

describe('parseFixture', () => {
  it('gives back any delivery, byte for byte', () => {
    const text = fc.oneof(fc.string({ unit: 'binary' }), fc.json())
    const affix = fc.constantFrom('', '\ufeff', '\n', '\r\n', '\0', ' ')
    const body = fc.oneof(
      fc.uint8Array({ maxLength: 64 }),
      fc.tuple(affix, text, affix).map((parts): Uint8Array => Buffer.from(parts.join(''))),
    )
    const name = fc.oneof(
      fc.constantFrom('__proto__', 'X-A'),
      fc.stringMatching(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,9}$/),
    )
    const value = fc.stringMatching(/^[\t\x20-\x7e\x80-\xff]{0,9}$/)
    fc.assert(
      fc.property(body, fc.array(fc.tuple(name, value)), (given, headers) => {
        const fixture = toFixture(delivery('a', { body: given, headers }))
        const read = parseFixture(fixtureText(fixture), 'x.json')
        expect(read).toStrictEqual(fixture)
        expect(passedOn(fixtureLines(read))).toEqual(passedOn(fixtureLines(fixture)))
        expect(Buffer.from(fixtureBody(read))).toEqual(Buffer.from(given))
      }),
      { numRuns: 500 },
    )
  })

  it.each(['UTF-8', 'no text'])('gives back a mebibyte: %s', (kind) => {
    const bytes = Uint8Array.from(
      { length: 1_048_576 },
      (_, i) => (i * 31 + (i >> 8)) % (kind === 'UTF-8' ? 128 : 256),
    )
    const { body, bodyBase64, ...others } = toFixture(delivery('a', { body: bytes }))
    expect(body === undefined).toBe(kind !== 'UTF-8')
    const read = parseFixture(fixtureText({ ...others, body, bodyBase64 }), 'x.json')
    expect(Buffer.from(fixtureBody(read)).equals(bytes)).toBe(true)
  })

  it('reads what a person wrote', () => {
    const text = `\ufeff{"$schema": "x", "relay": 1, "provider": "gitea", "event": "push", "delivery": "1",
      "headers": {"X-Two": ["a", "b"], "Cookie": "c", "Host": "d"}, "payload": {"a": [1, "é"]}}`
    const fixture = parseFixture(text, 'x.json')
    expect(Buffer.from(fixtureBody(fixture)).toString()).toBe('{"a":[1,"é"]}')
    expect(passedOn(fixtureLines(fixture))).toEqual([
      ['X-Two', 'a'],
      ['X-Two', 'b'],
    ] satisfies Header[])
  })

  it.each([
    [{ body: undefined }, 'line 1: must have one of body, bodyBase64, payload'],
    [{ payload: {} }, 'line 10: payload: must not be beside body'],
    [{ boddy: '' }, 'line 10: boddy: no such field'],
    [{ relay: 2 }, "line 2: relay: must be 1, the format's version"],
    [{ provider: 'Git Hub' }, 'line 3: provider: must be a lower-case name like github'],
    [{ event: '' }, 'line 4: event: must be the name of an event, like push'],
    [{ delivery: 1 }, 'line 5: delivery: must be 1 to 200 visible ASCII characters'],
    [{ headers: [] }, 'line 6: headers: must be an object of headers'],
    [{ headers: { a: 'b', 'c d': 'e' } }, "line 8: headers.c d: must be a header's name"],
    [
      { headers: { a: 'b', c: 'd\n' } },
      'line 8: headers.c: must be text in latin1 without control characters, or a list of such',
    ],
    [{ headers: { a: 'b', c: [] } }, 'line 8: headers.c: must not be an empty list'],
    [
      { headers: Object.fromEntries([['__proto__', 1]]) },
      'line 7: headers.__proto__: must be text in latin1 without control characters, or a list of such',
    ],
    [{ body: '\ud800' }, 'line 9: body: has half a character; bodyBase64 can hold any bytes'],
    [{ body: undefined, bodyBase64: '6R==' }, 'line 9: bodyBase64: must be base64'],
    [{ body: undefined, bodyBase64: '6Q' }, 'line 9: bodyBase64: must be base64'],
    [{ body: undefined, payload: [] }, 'line 9: payload: must be an object'],
    [{ body: 'é'.repeat(13_107_201) }, 'line 9: body: must be at most 25 MiB'],
  ])('says where %o is wrong: %s', (wrong, message) => {
    const text = JSON.stringify({ ...FIXTURE, ...wrong }, null, 2)
    expect(failing(text)).toEqual(['usage', `x.json, ${message}`])
  })

  it('says where a file is no JSON, or no object', () => {
    expect(failing('{\n"relay": 1,\n}')).toEqual(['usage', 'x.json, line 3: not JSON'])
    expect(failing('\n[]')).toEqual(['usage', 'x.json, line 2: must be an object'])
  })

  it('takes 25 MiB', () => {
    const { body, ...others } = FIXTURE
    const largest = { ...others, bodyBase64: Buffer.alloc(26_214_400, 255).toString('base64') }
    expect(body).toBeDefined()
    expect(fixtureBody(parseFixture(fixtureText(largest), 'x.json')).byteLength).toBe(26_214_400)
  })
})

describe('loadFixtures', () => {
  const folder = emptyFolder()
  const at = (name: string) => path.join(folder, name)
  mkdirSync(at('sub/empty'), { recursive: true })
  for (const name of ['b.json', 'a.json', 'sub/c.json'])
    writeFileSync(at(name), fixtureText({ ...FIXTURE, delivery: name }))
  for (const name of ['fixture.schema.json', 'notes.txt', 'sub/payload'])
    writeFileSync(at(name), '{"a":\r\n1}\n')
  writeFileSync(at('latin1'), Buffer.of(0x22, 0xe9, 0x22))

  it('reads files, folders in the order of names, and standard input', async () => {
    const stdin = Readable.from([Buffer.from(fixtureText(FIXTURE))])
    const found = await all([folder, '-', at('b.json')], { stdin })
    expect(found.map(({ name, fixture }) => [name, fixture.delivery])).toEqual([
      [at('a.json'), 'a.json'],
      [at('b.json'), 'b.json'],
      [at('sub/c.json'), 'sub/c.json'],
      ['standard input', 'id-1'],
      [at('b.json'), 'b.json'],
    ])
  })

  it('takes a bare payload as it is, once it is told the event', async () => {
    const [one] = await all([at('sub/payload')], { event: 'push', provider: 'gitea' })
    expect(one).toEqual({
      name: at('sub/payload'),
      fixture: {
        relay: 1,
        provider: 'gitea',
        event: 'push',
        delivery: expect.stringMatching(/^[0-9a-f-]{36}$/),
        headers: { 'Content-Type': 'application/json' },
        body: '{"a":\r\n1}\n',
      },
    })
    await expect(all([at('sub/payload')])).rejects.toMatchObject({
      kind: 'usage',
      message: `${at('sub/payload')}: not a fixture but a bare payload, which holds no signature; to send it, give its event, as with --event push`,
    })
  })

  it.each([
    ['missing', 'no such file or folder'],
    ['sub/empty', 'has no fixtures (*.json)'],
    ['latin1', 'not UTF-8'],
  ])('says of %s: %s', async (name, why) => {
    await expect(all([at(name)])).rejects.toMatchObject({ kind: 'usage', message: `${at(name)}: ${why}` })
  })

  it('stops waiting for standard input when it is told to', async () => {
    const stop = new AbortController()
    const reading = all(['-'], { stdin: new Readable({ read() {} }), signal: stop.signal })
    stop.abort()
    await expect(reading).rejects.toMatchObject({ name: 'AbortError' })
  })
})

describe('findFixtures', () => {
  const folder = emptyFolder()
  const file = path.join(folder, 'a.json')
  const link = path.join(folder, 'b.json')
  const write = (delivery: string): void => writeFileSync(file, fixtureText({ ...FIXTURE, delivery }))
  write('before')
  symlinkSync(file, link)

  async function found(...paths: readonly string[]): Promise<FoundFixture[]> {
    const stdin = Readable.from([Buffer.from(fixtureText({ ...FIXTURE, delivery: 'piped' }))])
    return listed(findFixtures(paths, { stdin }))
  }

  it('reads regular files when they are loaded, and at once what can be read only once', async () => {
    const all = await found(folder, '-')
    write('after')
    expect(all.map(({ name, load }) => [name, load().delivery])).toEqual([
      [file, 'after'],
      [link, 'after'],
      ['standard input', 'piped'],
    ])
    expect(all[2]?.load()).toBe(all[2]?.load())
    await expect(
      listed(findFixtures([file, '-'], { stdin: Readable.from([Buffer.from('{')]) })),
    ).rejects.toMatchObject({ message: 'standard input, line 1: not JSON' })
  })

  it.each([
    ['gone', () => {}, 'no such file or folder'],
    ['a pipe that nobody writes to', () => void execFileSync('mkfifo', [file]), 'not a file any more'],
    ['without end', () => symlinkSync('/dev/zero', file), 'not a file any more'],
    ['a folder', () => mkdirSync(file), 'cannot be read (EISDIR)'],
  ])('says that a file is %s by the time it is loaded', async (_, become, why) => {
    write('before')
    const [one] = await found(link)
    unlinkSync(file)
    become()
    expect(() => one?.load()).toThrow(expect.objectContaining({ kind: 'usage', message: `${link}: ${why}` }))
    rmSync(file, { recursive: true, force: true })
  })

  it('stops reading when it is told to meanwhile', async () => {
    const stop = new AbortController()
    const stdin = new Readable({ read: () => stop.abort() })
    await expect(all(['-'], { stdin, signal: stop.signal })).rejects.toMatchObject({ name: 'AbortError' })
    write('after')
    await expect(all([file], { signal: stop.signal })).rejects.toMatchObject({ name: 'AbortError' })
  })
})

async function all(paths: readonly string[], options?: LoadOptions): Promise<NamedFixture[]> {
  return listed(loadFixtures(paths, options))
}

async function listed<T>(values: AsyncIterable<T>): Promise<T[]> {
  const list: T[] = []
  for await (const value of values) list.push(value)
  return list
}

function failing(text: string): [string, string] | undefined {
  try {
    parseFixture(text, 'x.json')
    return undefined
  } catch (error) {
    return error instanceof RelayError ? [error.kind, error.message] : undefined
  }
}
