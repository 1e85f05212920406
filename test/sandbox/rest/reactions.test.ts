import { afterAll, describe, expect, it } from 'vitest'
import { REACTIONS } from '../../../src/codehost/host.js'
import { answerOf, call, json, refusal, signIn, start } from '../rig.js'

const sandbox = await start()
const headers = await signIn(sandbox)
afterAll(() => sandbox[Symbol.asyncDispose]())

const react = (subject: string, content: unknown): Promise<Response> =>
  call(sandbox, `POST /repos/octo/demo/${subject}/reactions`, headers, { content })

describe('a reaction', () => {
  it.each(REACTIONS)('%s is created once, and returned the second time', async (content) => {
    const first = await answerOf(await react('issues/1', content))
    expect(first).toEqual({
      status: 201,
      body: {
        id: expect.any(Number),
        node_id: expect.any(String),
        user: expect.objectContaining({ login: 'octo' }),
        content,
        created_at: '2026-05-04T03:02:01Z',
      },
    })
    expect(await answerOf(await react('issues/1', content))).toEqual({ status: 200, body: first.body })
  })

  it('works on comments and review comments too, counted separately', async () => {
    const made = await call(sandbox, 'POST /repos/octo/demo/issues/2/comments', headers, { body: 'x' })
    const { id } = await json<{ id: number }>(made)
    const [review] = sandbox.state.reviewComments
    expect((await react(`issues/comments/${id}`, 'heart')).status).toBe(201)
    expect((await react(`pulls/comments/${review?.id}`, 'heart')).status).toBe(201)
    expect((await react('issues/2', 'rocket')).status).toBe(201)

    const count = async (path: string): Promise<unknown> =>
      (await json<{ reactions: unknown }>(call(sandbox, `GET /repos/octo/demo/${path}`, headers))).reactions
    const none = Object.fromEntries(REACTIONS.map((content) => [content, 0]))
    const base = `${sandbox.url}/api/v3/repos/octo/demo/issues`
    expect(await count(`issues/comments/${id}`)).toEqual({
      ...none,
      url: `${base}/comments/${id}/reactions`,
      total_count: 1,
      heart: 1,
    })
    expect(await count('issues/2')).toEqual({
      ...none,
      url: `${base}/2/reactions`,
      total_count: 1,
      rocket: 1,
    })
    expect(sandbox.state.reactions.map(({ subject }) => subject.kind).slice(-3)).toEqual([
      'comment',
      'review_comment',
      'issue',
    ])
  })

  it.each(['thumbs', '', null, 1, ['heart'], '__proto__'])('%j is refused', async (content) => {
    const errors = [{ resource: 'Reaction', code: 'invalid', field: 'content' }]
    expect(await answerOf(await react('issues/1', content))).toEqual(
      refusal(422, 'Validation Failed', errors),
    )
  })

  it.each([
    ['a locked conversation', 'issues/4', 403, 'Unable to create reaction because issue is locked.'],
    ['an issue that is not there', 'issues/99', 404, 'Not Found'],
    ['a comment that is not there', 'issues/comments/1', 404, 'Not Found'],
    ['a review comment that is not there', 'pulls/comments/1', 404, 'Not Found'],
  ])('is refused on %s', async (_, subject, status, message) => {
    expect(await answerOf(await react(subject, 'heart'))).toEqual(refusal(status, message))
  })
})
