import { execFile } from 'node:child_process'
import { readdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import * as fc from 'fast-check'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Header } from '../../src/http/headers.js'
import { curlCommand } from '../../src/inspector/curl.js'
import { emptyFolder } from '../kit/folder.js'
import { type Receiver, receiver } from '../kit/receiver.js'

let target: Receiver
beforeAll(async () => void (target = await receiver()))
afterAll(() => target[Symbol.asyncDispose]())

/** Runs the command with sh, and resolves to what arrived. The shell has run nothing else when its folder stays empty. */
async function sent(headers: readonly Header[], body: Uint8Array, place = '/') {
  const cwd = emptyFolder()
  const before = target.received.length
  const script = path.join(emptyFolder(), 'script')
  writeFileSync(script, curlCommand({ headers, body }, `${target.url}${place}`))
  await promisify(execFile)('/bin/sh', [script], { cwd })
  expect(readdirSync(cwd)).toEqual([])
  const [handed] = target.received.slice(before)
  if (!handed) throw new Error('nothing arrived')
  const names = new Set(headers.map(([name]) => name))
  const own = handed.headers.filter(([name]) => names.has(name))
  return { path: handed.path, headers: own, body: Buffer.from(handed.body) }
}

it.each([
  ['quotes', `{"a":"it's \\"x\\"; touch oops; $(touch oops) \`touch oops\`"}`],
  ['what printf would read', '%s%d\\n\\101 %%'],
  ['a file name for curl', '@/etc/passwd'],
  ['an option', '-d @/etc/passwd'],
  ['line ends', '{\r\n\n "a": 1\r}\n\n'],
  ['a long line', `"${'x'.repeat(300_000)}"`],
  ['bytes that are no text', Uint8Array.from({ length: 256 }, (_, i) => i)],
])('a curl command sends a body with %s as it is', async (_, given) => {
  const body = Buffer.from(given)
  expect((await sent([], body)).body.equals(body)).toBe(true)
})

it('a curl command sends headers as they are, and quotes the address', async () => {
  const headers: Header[] = [
    ['X-Quotes', `it's "x" $(touch oops) \`touch oops\``],
    ['X-Empty', ''],
    ['X-Latin', 'caf\u00e9'],
    ['X-At', '@/etc/passwd'],
  ]
  const place = `/a'b;$(touch\\toops)[1-3]{a,b}?x=1&touch=oops`
  expect(await sent(headers, Buffer.of(), place)).toEqual({ path: place, headers, body: Buffer.of() })
})

it('a curl command sends any body and header', async () => {
  const character = fc.integer({ min: 0x20, max: 0x7e }).map((code) => String.fromCharCode(code))
  const value = fc.string({ unit: character }).map((text) => text.trim())
  const text = fc.string().map((body) => Buffer.from(body))
  const bytes = fc.uint8Array({ maxLength: 200 }).map((body) => Buffer.from(body))
  await fc.assert(
    fc.asyncProperty(bytes, text, value, async (binary, readable, header) => {
      const headers: Header[] = [['X-Any', header]]
      for (const body of [binary, readable])
        expect(await sent(headers, body)).toEqual({ path: '/', headers, body })
    }),
    { numRuns: 25 },
  )
})
