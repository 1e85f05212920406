import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { RelayError } from '../../../../src/base/errors.js'
import type { Context } from '../../../../src/old/context.js'
import { readText } from '../../../../src/old/commands/comment/text.js'
import { testContext } from '../../../helpers/context.js'
import { PassThrough, Readable } from 'node:stream'

const MIB = 1_048_576

function reading(stdin: Readable, over: Partial<Context> = {}): Context {
  return testContext({ stdin, ...over }).context
}

/** A context in whose folder a file `text` holds these bytes. */
function beside(bytes: string | Uint8Array): Context {
  const { context } = testContext()
  writeFileSync(path.join(context.cwd, 'text'), bytes)
  return context
}

describe('the text', () => {
  it('is the argument', async () => {
    expect(await readText(reading(piped('ignored')), { argument: ' a\n' })).toBe(' a\n')
  })

  it('is standard input, as it comes', async () => {
    const context = reading(
      piped('héllo ', Buffer.from('👋').subarray(0, 2), Buffer.from('👋').subarray(2), '\r\n'),
    )
    expect(await readText(context, { argument: '-' })).toBe('héllo 👋\r\n')
    expect(await readText(reading(piped('x')), { file: '-' })).toBe('x')
  })

  it('is the file, found from the working folder, without a byte order mark', async () => {
    expect(await readText(beside('\u{feff}héllo\n'), { file: 'text' })).toBe('héllo\n')
  })

  it('may be 1 MiB long', async () => {
    expect(await readText(beside('x'.repeat(MIB)), { file: 'text' })).toHaveLength(MIB)
  })
})

describe('refused', () => {
  const usage = (message: string) => new RelayError('usage', message)

  it('both argument and file', async () => {
    await expect(readText(beside('x'), { argument: 'y', file: 'text' })).rejects.toEqual(
      usage('The text is given twice: as an argument and with --body-file'),
    )
  })

  it('neither, on a terminal and off it', async () => {
    const terminal = Object.assign(new PassThrough(), { isTTY: true })
    await expect(readText(reading(terminal), {})).rejects.toEqual(
      usage('No text given. Give it as an argument, with --body-file, or - to type it here'),
    )
    const pipe = piped('hello')
    await expect(readText(reading(pipe), {})).rejects.toEqual(
      usage('No text given. Give it as an argument, with --body-file, or - to read standard input'),
    )
    expect(pipe.readableDidRead).toBe(false)
  })

  it.each(['', ' ', '\n\t\u{a0}\u{feff}'])('nothing but space: %j', async (text) => {
    const blank = usage('The text is empty')
    await expect(readText(reading(piped()), { argument: text })).rejects.toEqual(blank)
    await expect(readText(reading(piped(text)), { argument: '-' })).rejects.toEqual(blank)
    await expect(readText(beside(text), { file: 'text' })).rejects.toEqual(blank)
  })

  it('text that is not UTF-8', async () => {
    const latin1 = Buffer.from('héllo', 'latin1')
    await expect(readText(reading(piped(latin1)), { argument: '-' })).rejects.toThrow(
      usage('standard input is not UTF-8'),
    )
    await expect(readText(beside(latin1), { file: 'text' })).rejects.toThrow(
      usage('--body-file: text is not UTF-8'),
    )
  })

  it('a missing file, or something that is not a file', async () => {
    await expect(readText(reading(piped()), { file: 'nowhere' })).rejects.toThrow(
      usage('--body-file: nowhere cannot be read (ENOENT)'),
    )
    await expect(readText(reading(piped()), { file: '.' })).rejects.toThrow(
      usage('--body-file: . cannot be read (EISDIR)'),
    )
  })

  it('more than 1 MiB, beyond which nothing is read', async () => {
    await expect(readText(beside('x'.repeat(MIB + 1)), { file: 'text' })).rejects.toThrow(
      new RelayError('too_large', '--body-file: text is larger than 1 MiB'),
    )
    const endless = new Readable({
      read(size) {
        this.push(Buffer.alloc(size, 'x'))
      },
    })
    await expect(readText(reading(endless), { argument: '-' })).rejects.toThrow(
      new RelayError('too_large', 'standard input is larger than 1 MiB'),
    )
    expect(endless.destroyed).toBe(true)
  })
})

it('stops waiting for standard input when interrupted', async () => {
  const abort = new AbortController()
  const waiting = new PassThrough()
  const text = readText(reading(waiting, { signal: abort.signal }), { argument: '-' })
  const reason = new RelayError('cancelled', 'Interrupted')
  abort.abort(reason)
  await expect(text).rejects.toMatchObject({ name: 'AbortError', cause: reason })
})

/** What is piped into a command. */
function piped(...chunks: (string | Uint8Array)[]): Readable {
  return Readable.from(chunks.map((chunk) => Buffer.from(chunk)))
}
