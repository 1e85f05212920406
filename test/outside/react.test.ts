import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Place, place, USER } from '../kit/place.js'
import { prints } from '../kit/run.js'

const AGAIN = 'you had already added this reaction\n'
const TERMINAL = { terminal: { streams: ['stdout'] } } as const

let here: Place

beforeAll(async () => {
  here = await place({ signedIn: true })
})
afterAll(() => here[Symbol.asyncDispose]())

describe('relay react', () => {
  it('prints the reaction, and reports one that existed already', async () => {
    const { sandbox } = here
    const ran = async (text: string) => here.run('react', 'octo/demo#1', text)
    expect([await ran('👍🏽'), await ran('+1'), await ran('-1')]).toEqual([
      prints('+1\n'),
      { code: 0, out: '+1\n', err: AGAIN },
      prints('-1\n'),
    ])
    expect(await here.run('react', '--dry-run', 'octo/demo#1', '--', '-1')).toMatchObject({
      code: 0,
      out: '',
    })
    const [first, second] = sandbox.reactions
    expect([first?.content, second?.content, first?.subject.kind]).toEqual(['+1', '-1', 'issue'])
  })

  it('reacts to the comment whose address is given, and prints an object under --json', async () => {
    const { sandbox } = here
    const { out: address } = await here.run('comment', 'octo/demo#1', 'hello')
    const review = `${sandbox.url}/octo/demo/pull/2#discussion_r3001`
    const rans = [
      await here.run('react', address.trim(), '🎉', '--json'),
      await here.run('react', review, ':rocket:', '--json'),
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
    const { sandbox } = here
    const printed = async (...argv: string[]): Promise<string> =>
      (await here.runWith(TERMINAL, ...argv, '--color', 'never')).out
    expect(await printed('react', 'octo/demo#1', 'eyes')).toBe('Reacted eyes to octo/demo#1\n')
    const review = `${sandbox.url}/octo/demo/pull/2#discussion_r3001`
    expect(await printed('react', review, 'eyes')).toBe(
      'Reacted eyes to review comment 3001 on octo/demo#2\n',
    )
    const object = await printed('react', 'octo/demo#1', 'heart', '--json')
    expect(JSON.parse(object)).toMatchObject({ content: 'heart', created: true })
  })

  it('is refused on a locked issue, exit 8', async () => {
    const { code, out, err } = await here.run('react', 'octo/demo#4', 'eyes')
    expect({ code, out }).toEqual({ code: 8, out: '' })
    expect(err).toMatch(/^error: The sandbox refused: .+\n$/)
  })

  it('--dry-run prints what would happen, and sends nothing', async () => {
    const { sandbox } = here
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
      const { code, out, err } = await here.run(...argv)
      expect({ code, out }).toEqual({ code: 0, out: '' })
      expect(err).toContain(`would react heart to ${words} at ${sandbox.url} as ${USER}\n`)
      const { request }: { request: unknown } = JSON.parse((await here.run(...argv, '--json')).out)
      expect(request).toEqual({ owner: 'octo', repo: 'demo', issueNumber: 1, ...ids, content: 'heart' })
    }
    expect(sandbox.requests).toHaveLength(before)
  })
})
