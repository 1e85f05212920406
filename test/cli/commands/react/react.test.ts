import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { react } from '../../../../src/cli/commands/react/declaration.js'
import {
  type Alone,
  onTerminal,
  parsed,
  type Served,
  shell,
  startAlone,
  startServed,
  USER,
} from '../../rig.js'

const AGAIN = 'you had already added this reaction\n'

let served: Served
let alone: Alone

beforeAll(async () => {
  served = await startServed()
  alone = await startAlone()
})

afterAll(async () => {
  await served[Symbol.asyncDispose]()
  await alone[Symbol.asyncDispose]()
})

describe('the command line of relay react', () => {
  it.each([
    [
      ['octo/demo#1', '+1'],
      ['octo/demo#1', '+1', {}],
    ],
    [
      ['octo/demo#1', '-1'],
      ['octo/demo#1', '-1', {}],
    ],
    [
      ['octo/demo#1', '-1', '--json'],
      ['octo/demo#1', '-1', { json: true }],
    ],
    [
      ['--dry-run', 'octo/demo#1', '--', '-1'],
      ['octo/demo#1', '-1', { dryRun: true }],
    ],
  ])('%j', async (argv, given) => {
    expect(await parsed(react, [...argv])).toEqual(given)
  })

  it.each([[['octo/demo#1', '+1', '-1']], [['octo/demo#1', '-2x']]])('not %j', async (argv) => {
    await expect(parsed(react, [...argv])).rejects.toMatchObject({ exitCode: 1 })
  })
})

describe.each([
  ['through the running instance', () => served],
  ['in this process, without one', () => alone],
])('relay react %s', (_, place) => {
  it('prints the reaction, and reports one that existed already', async () => {
    const { shell, sandbox } = place()
    const ran = async (text: string) => shell.run(['react', 'octo/demo#1', text])
    expect([await ran('👍🏽'), await ran('+1'), await ran('-1')]).toEqual([
      { code: 0, out: '+1\n', err: '' },
      { code: 0, out: '+1\n', err: AGAIN },
      { code: 0, out: '-1\n', err: '' },
    ])
    const [first, second] = sandbox.reactions
    expect([first?.content, second?.content, first?.subject.kind]).toEqual(['+1', '-1', 'issue'])
  })

  it('reacts to the comment whose address is given, and prints an object under --json', async () => {
    const { shell, sandbox } = place()
    const { out: address } = await shell.run(['comment', 'octo/demo#1', 'hello'])
    const review = `${sandbox.url}/octo/demo/pull/2#discussion_r3001`
    const rans = [
      await shell.run(['react', address.trim(), '🎉', '--json']),
      await shell.run(['react', review, ':rocket:', '--json']),
    ]
    const made = sandbox.reactions.slice(-2)
    const id = sandbox.comments.at(-1)?.id
    expect(made.map(({ subject }) => subject)).toEqual([
      { kind: 'comment', id },
      { kind: 'review_comment', id: 3001 },
    ])
    const object = (n: number, content: string) =>
      `${JSON.stringify({ v: 1, id: made[n]?.id, content, created: true })}\n`
    expect(rans).toEqual([
      { code: 0, out: object(0, 'hooray'), err: '' },
      { code: 0, out: object(1, 'rocket'), err: '' },
    ])
  })

  it('prints a sentence on a terminal', async () => {
    const { shell, sandbox } = place()
    expect(await onTerminal(shell, ['react', 'octo/demo#1', 'eyes'])).toBe('Reacted eyes to octo/demo#1\n')
    const review = `${sandbox.url}/octo/demo/pull/2#discussion_r3001`
    expect(await onTerminal(shell, ['react', review, 'eyes'])).toBe(
      'Reacted eyes to review comment 3001 on octo/demo#2\n',
    )
    const object = await onTerminal(shell, ['react', 'octo/demo#1', 'heart', '--json'])
    expect(JSON.parse(object)).toMatchObject({ content: 'heart', created: true })
  })

  it('is refused on a locked issue, exit 8', async () => {
    const { code, out, err } = await place().shell.run(['react', 'octo/demo#4', 'eyes'])
    expect({ code, out }).toEqual({ code: 8, out: '' })
    expect(err).toMatch(/^error: The sandbox refused: .+\n$/)
  })

  it('--dry-run prints what would happen, and sends nothing', async () => {
    const { shell, sandbox } = place()
    const before = sandbox.requests.length
    const plans = [
      ['octo/demo#1', 'octo/demo#1', {}],
      [`${sandbox.url}/octo/demo/issues/1#issuecomment-5`, 'comment 5 on octo/demo#1', { commentId: 5 }],
      [
        `${sandbox.url}/octo/demo/pull/1#discussion_r7`,
        'review comment 7 on octo/demo#1',
        { reviewCommentId: 7 },
      ],
    ] as const
    for (const [address, words, ids] of plans) {
      const argv = ['react', address, 'heart', '--dry-run']
      const { code, out, err } = await shell.run(argv)
      expect({ code, out }).toEqual({ code: 0, out: '' })
      expect(err).toContain(`would react heart to ${words} at ${sandbox.url} as ${USER}, `)
      const { request }: { request: unknown } = JSON.parse((await shell.run([...argv, '--json'])).out)
      expect(request).toEqual({ owner: 'octo', repo: 'demo', issueNumber: 1, ...ids, content: 'heart' })
    }
    expect(sandbox.requests).toHaveLength(before)
  })
})

it('an unknown reaction is a usage error that lists the reactions, exit 2', async () => {
  expect(await shell().run(['react', 'octo/demo#1', '-2'])).toEqual({
    code: 2,
    out: '',
    err: 'error: "-2" is not a reaction. Give one of +1 👍, -1 👎, laugh 😄, confused 😕, heart ❤, hooray 🎉, rocket 🚀, eyes 👀\n',
  })
})

it('a missing reaction is a usage error that lists the reactions, exit 2', async () => {
  expect(await shell().run(['react', 'octo/demo#1'])).toEqual({
    code: 2,
    out: '',
    err: 'error: No reaction given. Give one of +1, -1, laugh, confused, heart, hooray, rocket, eyes, or the emoji\n',
  })
})
