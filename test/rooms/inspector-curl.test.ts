import { execFile } from 'node:child_process'
import { readdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import * as fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Header } from '../../src/http/headers.js'
import { curlCommand } from '../../src/inspector/curl.js'
import { emptyFolder } from '../kit/folder.js'
import { type Receiver, receiver } from '../kit/receiver.js'

const run = promisify(execFile)

describe('a curl command', () => {
  let target: Receiver
  beforeAll(async () => {
    target = await receiver()
  })
  afterAll(() => target[Symbol.asyncDispose]())

  /** Runs the command with sh, and resolves to what arrived. The shell has run nothing else when its folder stays empty. */
  const sent = async (headers: readonly Header[], body: Uint8Array, place = '/') => {
    const cwd = emptyFolder()
    const before = target.received.length
    const script = path.join(emptyFolder(), 'script')
    writeFileSync(script, curlCommand({ headers, body }, `${target.url}${place}`))
    await run('/bin/sh', [script], { cwd })
    expect(readdirSync(cwd)).toEqual([])
    const [handed] = target.received.slice(before)
    if (!handed) throw new Error('nothing arrived')
    const names = new Set(headers.map(([name]) => name))
    return { headers: handed.headers.filter(([name]) => names.has(name)), body: Buffer.from(handed.body) }
  }

  it.each([
    ['quotes', `{"a":"it's \\"x\\"; touch oops; $(touch oops) \`touch oops\`"}`],
    ['what printf would read', '%s%d\\n\\101 %%'],
    ['a file name for curl', '@/etc/passwd'],
    ['an option', '-d @/etc/passwd'],
    ['line ends', '{\r\n\n "a": 1\r}\n\n'],
    ['nothing', ''],
    ['a long line', `"${'x'.repeat(300_000)}"`],
  ])('sends a body with %s as it is', async (_, text) => {
    const body = Buffer.from(text)
    expect((await sent([], body)).body.equals(body)).toBe(true)
  })

  it('sends bytes that are no text', async () => {
    const body = Buffer.from(Array.from({ length: 256 }, (_, i) => i))
    expect((await sent([], body)).body).toEqual(body)
  })

  it('sends headers as they are', async () => {
    const headers: Header[] = [
      ['X-Quotes', `it's "x" $(touch oops) \`touch oops\``],
      ['X-Empty', ''],
      ['X-Latin', 'caf\u00e9'],
      ['X-At', '@/etc/passwd'],
    ]
    expect((await sent(headers, Buffer.of())).headers).toEqual(headers)
  })

  it('quotes the address', async () => {
    const place = `/a'b;$(touch\\toops)[1-3]{a,b}?x=1&touch=oops`
    await sent([], Buffer.of(), place)
    expect(target.received.at(-1)?.path).toBe(place)
  })

  it('sends any body and header', async () => {
    const value = fc.string({
      unit: fc.integer({ min: 0x20, max: 0x7e }).map((code) => String.fromCharCode(code)),
    })
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 200 }), fc.string(), value, async (bytes, text, header) => {
        const given = header.trim()
        const headers: Header[] = [['X-Any', given]]
        expect(await sent(headers, bytes)).toEqual({ headers, body: Buffer.from(bytes) })
        const body = Buffer.from(text)
        expect((await sent(headers, body)).body).toEqual(body)
      }),
      { numRuns: 25 },
    )
  })
})
