import { afterAll, describe, expect, it } from 'vitest'
import { Secret } from '../../../src/base/secret.js'
import { scriptedServer } from '../../helpers/scripted-server.js'
import { answerOf, call, json, NOW, refusal, signIn, start } from '../rig.js'

const sandbox = await start()
const headers = await signIn(sandbox)
afterAll(() => sandbox[Symbol.asyncDispose]())

const comment = (issue: string, body: unknown): Promise<Response> =>
  call(sandbox, `POST /repos/${issue}/comments`, headers, body)

describe('a comment', () => {
  it('is stored unchanged, and found at the URL in the response', async () => {
    const body = 'Grüße 🎉 <b>&amp;</b>\r\n"quoted"'
    const answer = await comment('octo/demo/issues/1', { body })
    const made = await json<{ id: number; url: string }>(answer)
    expect(answer.status).toBe(201)
    expect(answer.headers.get('location')).toBe(made.url)
    expect(made).toMatchObject({
      url: `${sandbox.url}/api/v3/repos/octo/demo/issues/comments/${made.id}`,
      html_url: `${sandbox.url}/octo/demo/issues/1#issuecomment-${made.id}`,
      issue_url: `${sandbox.url}/api/v3/repos/octo/demo/issues/1`,
      user: { login: 'octo' },
      created_at: '2026-05-04T03:02:01Z',
      author_association: 'OWNER',
      body,
    })
    expect(sandbox.state.comments).toEqual([
      {
        id: made.id,
        repo: 'octo/demo',
        issueNumber: 1,
        user: 'octo',
        body,
        createdAt: '2026-05-04T03:02:01Z',
        updatedAt: '2026-05-04T03:02:01Z',
      },
    ])
    expect(await (await fetch(made.url, { headers })).json()).toEqual(made)
    const issue = await call(sandbox, 'GET /repos/octo/demo/issues/1', headers)
    expect(await issue.json()).toMatchObject({ number: 1, title: 'Say hello', comments: 1, state: 'open' })
  })

  it('works on a pull request too, and names ignore case', async () => {
    const made = await (await comment('Octo/DEMO/issues/2', { body: 'nice' })).json()
    expect(made).toMatchObject({ html_url: expect.stringContaining('/octo/demo/pull/2#issuecomment-') })
  })

  it('may have 65,536 characters, but not one more', async () => {
    expect((await comment('octo/demo/issues/3', { body: '\u0001'.repeat(65_536) })).status).toBe(201)
    const long = await answerOf(await comment('octo/demo/issues/3', { body: 'x'.repeat(65_537) }))
    expect(long).toEqual(invalid('Body is too long (maximum is 65536 characters)'))
  })

  it('is edited, and keeps its id and its time', async () => {
    let now = NOW
    await using receiver = await scriptedServer(() => ({}))
    const webhook = { url: () => receiver.url, secret: new Secret('hush') }
    await using sandbox = await start({ webhook, clock: () => now })
    const headers = await signIn(sandbox)
    const path = '/repos/octo/demo/issues/1/comments'
    const made = await json<{ id: number }>(call(sandbox, `POST ${path}`, headers, { body: 'one' }))
    now += 60_000
    const edit = `PATCH /repos/octo/demo/issues/comments/${made.id}`
    const edited = await json<object>(call(sandbox, edit, headers, { body: 'two' }))
    expect(edited).toEqual({ ...made, body: 'two', updated_at: '2026-05-04T03:03:01Z' })
    expect(await json(call(sandbox, `GET ${path}`, headers))).toEqual([edited])
    expect((await call(sandbox, edit, headers, { body: ' ' })).status).toBe(422)
    expect((await call(sandbox, edit.replace(String(made.id), '1'), headers, { body: 'x' })).status).toBe(404)
    expect((await call(sandbox, edit, await signIn(sandbox, 'read:user'), { body: 'x' })).status).toBe(404)
    await sandbox.idle()
    expect(receiver.received.map(({ body }) => JSON.parse(body))).toMatchObject([
      { action: 'created' },
      { action: 'edited', changes: { body: { from: 'one' } }, comment: { body: 'two' } },
    ])
  })

  it('is listed page by page, oldest first', async () => {
    for (const body of ['one', 'two', 'three']) await comment('octo/demo/issues/5', { body })
    const list = async (query: string): Promise<string[]> => {
      const answer = call(sandbox, `GET /repos/octo/demo/issues/5/comments${query}`, headers)
      return (await json<{ body: string }[]>(answer)).map(({ body }) => body)
    }
    expect(await list('')).toEqual(['one', 'two', 'three'])
    expect(await list('?per_page=2')).toEqual(['one', 'two'])
    expect(await list('?per_page=2&page=2')).toEqual(['three'])
    const path = '/repos/octo/demo/issues/5/comments?per_page=2'
    const { headers: sent } = await call(sandbox, `GET ${path}`, headers)
    const next = `<${sandbox.url}/api/v3${path}&page=2>`
    expect(sent.get('link')).toBe(`${next}; rel="next", ${next}; rel="last"`)
  })

  it.each([
    ['empty', { body: ' \n' }, invalid("Body can't be blank")],
    ['missing', {}, refusal(422, 'Invalid request.\n\n"body" wasn\'t supplied.')],
    ['a number', { body: 1 }, refusal(422, "Invalid request.\n\nFor 'properties/body', 1 is not a string.")],
    ['in an array', [], refusal(400, 'Body should be a JSON object')],
  ])('is refused when its text is %s', async (_, body, expected) => {
    expect(await answerOf(await comment('octo/demo/issues/1', body))).toEqual(expected)
  })

  it('is refused when it is not JSON, or over 1 MiB', async () => {
    const url = `${sandbox.url}/api/v3/repos/octo/demo/issues/1/comments`
    const post = async (body: string) => answerOf(await fetch(url, { method: 'POST', headers, body }))
    expect(await post('{"body":')).toEqual(refusal(400, 'Problems parsing JSON'))
    expect(await post('x'.repeat(1_048_577))).toEqual(refusal(413, 'Request too large'))
  })

  it.each([
    ['a locked conversation', 'octo/demo/issues/4', 403, 'Unable to create comment because issue is locked.'],
    ['a repository without issues', 'octo/no-issues/issues/1', 410, 'Issues are disabled for this repo'],
    ['an issue that is not there', 'octo/demo/issues/99', 404, 'Not Found'],
    ['a repository that is not there', 'octo/nothing/issues/1', 404, 'Not Found'],
    ['an issue that has no number', 'octo/demo/issues/one', 404, 'Not Found'],
  ])('is refused on %s', async (_, issue, status, message) => {
    expect(await answerOf(await comment(issue, { body: 'x' }))).toEqual(refusal(status, message))
  })
})

function invalid(message: string): object {
  const error = { resource: 'IssueComment', code: 'unprocessable', field: 'data', message }
  return refusal(422, 'Validation Failed', [error])
}
