import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Place, place } from '../kit/place.js'
import { fails } from '../kit/run.js'

let nobody: Place

beforeAll(async () => {
  nobody = await place({ host: 'none' })
})

afterAll(() => nobody[Symbol.asyncDispose]())

const usage = (command: string, args: string): string =>
  `Usage: relay ${command} [options] ${args}\n(relay ${command} --help says more)`

describe('a usage error of relay comment, exit 2', () => {
  it.each([
    [
      ['nonsense', 'x'],
      '"nonsense" is not an issue, pull request or comment. Give for example octo/demo#12, or its web address',
    ],
    [
      ['https://gitlab.com/octo/demo/issues/1', 'x'],
      'The address is on https://gitlab.com, but this profile uses https://github.com. Give an address there, or owner/repo#12',
    ],
    [['octo/demo#1', ' '], 'The text is empty'],
    [[], 'No target given. Give owner/repo#12, or --from'],
    [['--from', '7', 'octo/demo#1', 'x'], 'The target is given twice: as "octo/demo#1" and with --from 7'],
    [['octo/demo#1', 'x', '--sticky', 'a key'], '--sticky: must be 1 to 100 of A-Z a-z 0-9 . _ : / -'],
    [['octo/demo#1', 'x', '--sticky', 'k-->'], '--sticky: must be 1 to 100 of A-Z a-z 0-9 . _ : / -'],
    [['octo/demo#1', '-'], 'The text is empty'],
    [
      ['octo/demo#1', 'x', '--body-file', 'y'],
      'The text is given twice: as an argument and with --body-file',
    ],
    [['octo/demo#1'], 'No text given. Give it as an argument, with --body-file, or - to read standard input'],
    [
      ['octo/demo#1', 'a', 'b'],
      `too many arguments for 'comment'. Expected 2 arguments but got 3.\n${usage('comment', '[target] [text]')}`,
    ],
    [['octo/demo#1', '--body', 'x'], `unknown option '--body'\n${usage('comment', '[target] [text]')}`],
    [['--from'], `option '--from <entry|->' argument missing\n${usage('comment', '[target] [text]')}`],
    [
      ['octo/demo#1', 'x', '--user', 'a b'],
      '--user: must be 1–256 bytes without white space, control characters or "/"',
    ],
  ])('%j', async (argv, message) => {
    expect(await nobody.run('comment', ...argv)).toEqual(fails(2, message))
  })
})

describe('a usage error of relay merge, exit 2', () => {
  it.each([
    [
      ['https://github.com/octo/demo/issues/2'],
      'octo/demo#2 is an issue by its address. If it is a pull request, give octo/demo#2 as the target',
    ],
    [[], 'No target given. Give owner/repo#12, or --from'],
    [['octo/demo#2', '--from', '-'], 'The target is given twice: as "octo/demo#2" and with --from -'],
    [
      ['octo/demo'],
      '"octo/demo" is not an issue, pull request or comment. Give for example octo/demo#12, or its web address',
    ],
    [
      ['octo/demo#2', '--match-head', 'abc1234'],
      '--match-head: must be a full commit id of 40 or 64 hexadecimal digits',
    ],
    [
      ['octo/demo#2', 'x'],
      `too many arguments for 'merge'. Expected 1 argument but got 2.\n${usage('merge', '[target]')}`,
    ],
    [
      ['octo/demo#2', '--method', 'octopus'],
      `option '--method <method>' argument 'octopus' is invalid. Allowed choices are merge, squash, rebase.\n${usage('merge', '[target]')}`,
    ],
  ])('%j', async (argv, message) => {
    expect(await nobody.run('merge', ...argv)).toEqual(fails(2, message))
  })
})

describe('a usage error of relay react, exit 2', () => {
  it.each([
    [
      ['octo/demo#1', '+1', '-1'],
      `too many arguments for 'react'. Expected 2 arguments but got 3.\n${usage('react', '[target] [reaction]')}`,
    ],
    [['octo/demo#1', '-2x'], `unknown option '-2x'\n${usage('react', '[target] [reaction]')}`],
  ])('%j', async (argv, message) => {
    expect(await nobody.run('react', ...argv)).toEqual(fails(2, message))
  })

  it('an unknown reaction, which lists the reactions, exit 2', async () => {
    expect(await nobody.run('react', 'octo/demo#1', '-2')).toEqual(
      fails(
        2,
        '"-2" is not a reaction. Give one of +1 👍, -1 👎, laugh 😄, confused 😕, heart ❤, hooray 🎉, rocket 🚀, eyes 👀',
      ),
    )
  })

  it('a missing reaction is a usage error that lists the reactions, exit 2', async () => {
    expect(await nobody.run('react', 'octo/demo#1')).toEqual(
      fails(
        2,
        'No reaction given. Give one of +1, -1, laugh, confused, heart, hooray, rocket, eyes, or the emoji',
      ),
    )
  })
})
