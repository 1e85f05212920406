import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { parseStickyKey, type StickyParts, writeSticky } from '../../src/actions/sticky.js'
import { createProvider } from '../../src/providers/open.js'
import { startSandbox, type TestSandbox } from '../../src/testing/index.js'
import { openDatabase } from '../../src/store/open.js'
import type { Database } from '../../src/store/open.js'
import { failure } from '../helpers/failure.js'

const issue = { owner: 'octo', repo: 'demo', issueNumber: 1 }

let sandbox: TestSandbox & AsyncDisposable
let database: Database
let parts: StickyParts

beforeEach(async () => {
  sandbox = await startSandbox()
  database = await openDatabase({ kind: 'memory', folder: '' })
  const provider = createProvider({ name: 'sandbox', url: sandbox.url })
  const token = await sandbox.token()
  parts = {
    provider,
    token,
    store: database.store,
    create: (input) => provider.comment(token, input),
  }
})
afterEach(async () => {
  await database[Symbol.asyncDispose]()
  await sandbox[Symbol.asyncDispose]()
})

const write = (body: string, key = 'ci', more: Partial<StickyParts> = {}, on = issue) =>
  writeSticky({ ...parts, ...more }, { ...on, body }, key, {})
/** The comments of the tests: the seed has some of its own. */
const bodies = (): string[] =>
  sandbox.comments.map(({ body }) => body).filter((body) => /sticky|plain/.test(body))
const writes = (): string[] =>
  sandbox.requests
    .filter(({ method, path }) => ['POST', 'PATCH'].includes(method) && path.startsWith('/api/'))
    .map(({ method }) => method)

describe('writeSticky', () => {
  it('adds the comment once, and edits it from then on', async () => {
    const first = await write('one')
    expect(first.created).toBe(true)
    expect(await write('two')).toEqual({ ...first, created: false })
    expect(await write('three')).toEqual({ ...first, created: false })
    expect(bodies()).toEqual(['<!-- relay-sticky: ci -->\nthree'])
    expect(writes()).toEqual(['POST', 'PATCH', 'PATCH'])
  })

  it('keeps keys and issues apart, also a key that begins like another', async () => {
    for (const key of ['ci', 'ci-2', 'c']) expect(await write('x', key)).toMatchObject({ created: true })
    expect(await write('x', 'ci', {}, { ...issue, issueNumber: 2 })).toMatchObject({ created: true })
    expect(bodies()).toHaveLength(4)
  })

  it('finds it behind other comments, on any page', async () => {
    const { create } = parts
    for (let at = 0; at < 60; at++) await create({ ...issue, body: `plain ${at}` })
    const first = await write('one')
    for (let at = 0; at < 60; at++) await create({ ...issue, body: `plain ${at}` })
    expect(await write('two')).toEqual({ ...first, created: false })
  })

  it('leaves alone what another account wrote, and what only quotes the key', async () => {
    const quoting = 'plain: I saw <!-- relay-sticky: ci -->'
    await parts.create({ ...issue, body: quoting })
    const whoAmI = async (): Promise<{ login: string }> => ({ login: 'somebody-else' })
    await write('mine')
    const other = await write('theirs', 'ci', { provider: { ...parts.provider, whoAmI } })
    expect(other.created).toBe(true)
    expect(bodies()).toEqual([
      quoting,
      '<!-- relay-sticky: ci -->\nmine',
      '<!-- relay-sticky: ci -->\ntheirs',
    ])
  })

  it('makes one of many at once', async () => {
    const results = await Promise.all(Array.from({ length: 8 }, (_, at) => write(`number ${at}`)))
    expect(results.filter(({ created }) => created)).toHaveLength(1)
    expect(new Set(results.map(({ id }) => id)).size).toBe(1)
    expect(bodies()).toHaveLength(1)
  })

  it.each(['502', 'reset', 'reset-after'] as const)(
    'sends a write that fails (%s) once, and releases its turn',
    async (fault) => {
      sandbox.faults.next('comment', fault)
      await expect(write('one')).rejects.toMatchObject({ kind: 'provider_failed' })
      expect(writes()).toEqual(['POST'])
      await write('two')
      sandbox.faults.next('comment', fault)
      await expect(write('three')).rejects.toMatchObject({
        message: expect.stringContaining('the request may have been carried out all the same'),
      })
      const before = writes().length
      expect(await write('four')).toMatchObject({ created: false })
      expect(writes()).toHaveLength(before + 1)
    },
  )

  it('writes nothing when the comments cannot be read', async () => {
    await expect(write('x', 'ci', {}, { ...issue, issueNumber: 999 })).rejects.toMatchObject({
      kind: 'not_found',
    })
    const signal = AbortSignal.abort()
    await expect(writeSticky(parts, { ...issue, body: 'x' }, 'ci', { signal })).rejects.toMatchObject({
      kind: 'cancelled',
    })
    expect(writes()).toEqual([])
  })
})

describe('parseStickyKey', () => {
  it.each(['ci', 'CI/build:1.2_x-y', 'a'.repeat(100), '--'])('accepts %s', (key) => {
    expect(parseStickyKey(key)).toBe(key)
  })

  it.each(['', 'a b', 'a>', 'é', 'a'.repeat(101), 'a\n'])('refuses %j', (key) => {
    expect(failure(() => parseStickyKey(key))).toEqual({
      kind: 'usage',
      message: '--sticky: must be 1 to 100 of A-Z a-z 0-9 . _ : / -',
    })
  })
})
