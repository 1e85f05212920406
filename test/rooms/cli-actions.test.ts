import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { PassThrough, Readable } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { RelayError } from '../../src/base/errors.js'
import { runComment, runReact } from '../../src/cli/commands/actions.js'
import type { Context } from '../../src/cli/context.js'
import { emptyFolder } from '../kit/folder.js'
import { testShell } from './cli-shell.js'

const MIB = 1_048_576
const PLAN = { dryRun: true, json: true } as const

function shellOf(over: Partial<Context> = {}) {
  return testShell({ ...over, env: { RELAY_HOME: emptyFolder(), RELAY_USER: 'ada' }, ...PLAN })
}

/** The text that `relay comment` would send. */
async function textOf(argument: string | undefined, over: Partial<Context> = {}, flags: object = {}) {
  const { shell, out } = shellOf(over)
  await runComment(shell, { ...PLAN, ...flags }, 'octo/demo#1', argument)
  const { request }: { request: { body: string } } = JSON.parse(out())
  return request.body
}

/** The text of a file with these bytes. */
function ofFile(bytes: string | Uint8Array): Promise<string> {
  const cwd = emptyFolder()
  writeFileSync(path.join(cwd, 'text'), bytes)
  return textOf(undefined, { cwd }, { bodyFile: 'text' })
}

const piped = (...chunks: (string | Uint8Array)[]): Readable =>
  Readable.from(chunks.map((chunk) => Buffer.from(chunk)))
const usage = (message: string): RelayError => new RelayError('usage', message)

describe('the text of a comment', () => {
  it('is the argument, standard input as it comes, or a file without its byte order mark', async () => {
    expect(await textOf(' a\n', { stdin: piped('ignored') })).toBe(' a\n')
    const hand = Buffer.from('👋')
    const stdin = piped('héllo ', hand.subarray(0, 2), hand.subarray(2), '\r\n')
    expect(await textOf('-', { stdin })).toBe('héllo 👋\r\n')
    expect(await textOf(undefined, { stdin: piped('x') }, { bodyFile: '-' })).toBe('x')
    expect(await ofFile('\u{feff}héllo\n')).toBe('héllo\n')
    expect(await ofFile('x'.repeat(MIB))).toHaveLength(MIB)
  })

  it.each(['', ' ', '\n\t\u{a0}\u{feff}'])('is not blank: %j', async (text) => {
    const blank = usage('The text is empty')
    await expect(textOf(text)).rejects.toEqual(blank)
    await expect(textOf('-', { stdin: piped(text) })).rejects.toEqual(blank)
    await expect(ofFile(text)).rejects.toEqual(blank)
  })

  it('is asked for as the terminal allows, and standard input is not read for that', async () => {
    const stdin = Object.assign(new PassThrough(), { isTTY: true })
    await expect(textOf(undefined, { stdin })).rejects.toThrow('or - to type it here')
    expect(stdin.readableDidRead).toBe(false)
  })

  it('is UTF-8', async () => {
    const latin1 = Buffer.from('héllo', 'latin1')
    await expect(textOf('-', { stdin: piped(latin1) })).rejects.toThrow('standard input is not UTF-8')
    await expect(ofFile(latin1)).rejects.toThrow('--body-file: text is not UTF-8')
  })

  it.each([
    ['nowhere', 'ENOENT'],
    ['.', 'EISDIR'],
  ])('is not in %s', async (bodyFile, code) => {
    await expect(textOf(undefined, {}, { bodyFile })).rejects.toEqual(
      usage(`--body-file: ${bodyFile} cannot be read (${code})`),
    )
  })

  it('is at most 1 MiB long, beyond which nothing is read', async () => {
    await expect(ofFile('x'.repeat(MIB + 1))).rejects.toThrow('--body-file: text is larger than 1 MiB')
    const stdin = new Readable({
      read(size) {
        this.push(Buffer.alloc(size, 'x'))
      },
    })
    await expect(textOf('-', { stdin })).rejects.toEqual(
      new RelayError('too_large', 'standard input is larger than 1 MiB'),
    )
    expect(stdin.destroyed).toBe(true)
  })
})

describe('a reaction', () => {
  async function reactionOf(word: string): Promise<unknown> {
    const { shell, out } = shellOf()
    await runReact(shell, PLAN, 'octo/demo#1', word)
    const { request }: { request: { content: unknown } } = JSON.parse(out())
    return request.content
  }

  it.each([
    ['+1', ['+1', ':+1:', '👍', '👍🏽', 'thumbsup', ':thumbsup:', 'ThumbsUp']],
    ['-1', ['-1', '👎', '👎🏿', 'thumbsdown']],
    ['laugh', ['laugh', '😄', '😆', '😀', '😂', 'smile', ':laughing:']],
    ['confused', ['confused', '😕']],
    ['heart', ['heart', '❤', '❤️', '♥', '♥︎']],
    ['hooray', ['hooray', '🎉', ':tada:']],
    ['rocket', ['rocket', '🚀']],
    ['eyes', ['eyes', '👀']],
  ])('%s has other spellings', async (reaction, words) => {
    expect(await Promise.all(words.map(reactionOf))).toEqual(words.map(() => reaction))
  })

  it.each(['', ':', '::', '+2', '+1:', '👍👎', 'hea rt', '💔', '🏽', 'constructor'])(
    'is not %j',
    async (word) => {
      await expect(reactionOf(word)).rejects.toMatchObject({ kind: 'usage' })
    },
  )
})
