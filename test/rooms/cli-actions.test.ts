import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { PassThrough, Readable } from 'node:stream'
import { expect, it } from 'vitest'
import { RelayError } from '../../src/base/errors.js'
import { commentCommand } from '../../src/cli/commands/comment.js'
import { reactCommand } from '../../src/cli/commands/react.js'
import type { Context } from '../../src/cli/context.js'
import { emptyFolder } from '../kit/folder.js'
import { testShell } from './cli-shell.js'

const MIB = 1_048_576
const PLAN = { dryRun: true, json: true } as const

function shellOf(over: Partial<Context> = {}) {
  return testShell({ ...over, env: { RELAY_HOME: emptyFolder(), RELAY_USER: 'ada' }, ...PLAN })
}

/** What an action would send. */
async function requestOf<Request>(acted: AsyncIterable<{ readonly object: object }>): Promise<Request> {
  for await (const { object } of acted) return JSON.parse(JSON.stringify(object)).request
  throw new Error('it gave nothing')
}

/** The text that `relay comment` would send. */
async function textOf(argument: string | undefined, over: Partial<Context> = {}, flags: object = {}) {
  const { shell } = shellOf(over)
  const input = { ...PLAN, ...flags, target: 'octo/demo#1', text: argument }
  return (await requestOf<{ body: string }>(commentCommand.run(shell, input))).body
}

/** The text of a file with these bytes. */
function ofFile(bytes: string | Uint8Array): Promise<string> {
  const cwd = emptyFolder()
  writeFileSync(path.join(cwd, 'text'), bytes)
  return textOf(undefined, { cwd }, { bodyFile: 'text' })
}

/** The text of standard input. */
function ofInput(...chunks: (string | Uint8Array)[]): Promise<string> {
  return textOf('-', { stdin: Readable.from(chunks.map((chunk) => Buffer.from(chunk))) })
}

it('a comment is the argument, standard input as it comes, or a file without its byte order mark', async () => {
  const stdin = Readable.from([Buffer.from('x')])
  expect(await textOf(' a\n')).toBe(' a\n')
  expect(await textOf(undefined, { stdin }, { bodyFile: '-' })).toBe('x')
  const hand = Buffer.from('👋')
  expect(await ofInput('héllo ', hand.subarray(0, 2), hand.subarray(2), '\r\n')).toBe('héllo 👋\r\n')
  expect(await ofFile('\u{feff}héllo\n')).toBe('héllo\n')
  expect(await ofFile('x'.repeat(MIB))).toHaveLength(MIB)
})

const LATIN1 = Buffer.from('héllo', 'latin1')
const unreadable = (bodyFile: string) => textOf(undefined, {}, { bodyFile })

it.each<[why: string, read: () => Promise<string>]>([
  ['The text is empty', () => ofFile('\n\t\u{a0}\u{feff}')],
  [
    'standard input is not UTF-8, but perhaps Latin-1 or Windows-1252. Save it as UTF-8',
    () => ofInput(LATIN1),
  ],
  [
    '--body-file: text is not UTF-8, but perhaps Latin-1 or Windows-1252. Save it as UTF-8',
    () => ofFile(LATIN1),
  ],
  ['--body-file: nowhere cannot be read (ENOENT)', () => unreadable('nowhere')],
  ['--body-file: . cannot be read (EISDIR)', () => unreadable('.')],
])('a comment is refused: %s', async (why, read) => {
  await expect(read()).rejects.toEqual(new RelayError('usage', why))
})

it('a comment is at most 1 MiB long, beyond which nothing is read', async () => {
  await expect(ofFile('x'.repeat(MIB + 1))).rejects.toThrow('--body-file: text is larger than 1 MiB')
  const stdin = new Readable({
    read(size) {
      this.push(Buffer.alloc(size, 'x'))
    },
  })
  const error = new RelayError('too_large', 'standard input is larger than 1 MiB')
  await expect(textOf('-', { stdin })).rejects.toEqual(error)
  expect(stdin.destroyed).toBe(true)
})

it('a comment is asked for as the terminal allows, and standard input is not read for that', async () => {
  const stdin = Object.assign(new PassThrough(), { isTTY: true })
  await expect(textOf(undefined, { stdin })).rejects.toThrow('or - to type it here')
  expect(stdin.readableDidRead).toBe(false)
})

async function reactionOf(word: string): Promise<unknown> {
  const { shell } = shellOf()
  const input = { ...PLAN, target: 'octo/demo#1', reaction: word }
  return (await requestOf<{ content: unknown }>(reactCommand.run(shell, input))).content
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
])('the reaction %s has other spellings', async (reaction, words) => {
  expect(await Promise.all(words.map(reactionOf))).toEqual(words.map(() => reaction))
})

it.each(['', ':', '::', '+2', '+1:', '👍👎', 'hea rt', '💔', '🏽', 'constructor'])(
  'no reaction is %j',
  async (word) => {
    await expect(reactionOf(word)).rejects.toMatchObject({ kind: 'usage' })
  },
)
