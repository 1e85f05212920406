import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Sandbox } from '../../src/sandbox/sandbox.js'
import { answerOf, call, refusal, signIn, start } from './sandbox-rig.js'

let sandbox: Sandbox
let headers: { authorization: string }
beforeAll(async () => {
  sandbox = await start({ checkDuration: 1 })
  headers = await signIn(sandbox, 'repo read:user')
})
afterAll(() => sandbox[Symbol.asyncDispose]())

const DEMO = '/repos/octo/demo'

describe('the refusals of the REST API', () => {
  const comment = 'POST /repos/octo/demo/issues/1/comments'
  const merge = 'PUT /repos/octo/demo/pulls/2/merge'
  const react = 'POST /repos/octo/demo/issues/1/reactions'
  const invalid = (resource: string, code: string, field: string, message?: string) => [
    { resource, code, field, ...(message !== undefined && { message }) },
  ]
  const unprocessable = (message: string) => invalid('IssueComment', 'unprocessable', 'data', message)
  const locked = (what: string): string => `Unable to create ${what} because issue is locked.`
  const head = '0'.repeat(40)

  it.each<[string, unknown, number, string, object[]?]>([
    ['GET /nothing', undefined, 404, 'Not Found'],
    ['POST /user', {}, 404, 'Not Found'],
    ['GET /repos/octo/demo/pulls/1', undefined, 404, 'Not Found'],
    ['GET /repos/octo/demo/issues/01x', undefined, 404, 'Not Found'],
    [comment, { body: ' \n' }, 422, 'Validation Failed', unprocessable("Body can't be blank")],
    [comment, {}, 422, 'Invalid request.\n\n"body" wasn\'t supplied.'],
    [comment, { body: 1 }, 422, "Invalid request.\n\nFor 'properties/body', 1 is not a string."],
    [comment, [], 400, 'Body should be a JSON object'],
    ['POST /repos/octo/demo/issues/4/comments', { body: 'x' }, 403, locked('comment')],
    ['POST /repos/octo/no-issues/issues/1/comments', { body: 'x' }, 410, 'Issues are disabled for this repo'],
    ['POST /repos/octo/demo/issues/99/comments', { body: 'x' }, 404, 'Not Found'],
    ['POST /repos/octo/nothing/issues/1/comments', { body: 'x' }, 404, 'Not Found'],
    ['PATCH /repos/octo/demo/issues/comments/1', { body: 'x' }, 404, 'Not Found'],
    [react, { content: 'thumbs' }, 422, 'Validation Failed', invalid('Reaction', 'invalid', 'content')],
    ['POST /repos/octo/demo/issues/4/reactions', { content: 'heart' }, 403, locked('reaction')],
    ['POST /repos/octo/demo/pulls/comments/1/reactions', { content: 'heart' }, 404, 'Not Found'],
    [merge, { sha: head }, 409, 'Head branch was modified. Review and try the merge again.'],
    ['PUT /repos/octo/demo/pulls/3/merge', {}, 405, 'Pull Request is not mergeable'],
    ['PUT /repos/octo/demo/pulls/1/merge', {}, 404, 'Not Found'],
    [
      merge,
      { merge_method: 'octopus' },
      422,
      'Invalid request.\n\n"octopus" is not a member of ["merge", "squash", "rebase"].',
    ],
    [
      'PUT /repos/octo/demo/contents/a',
      { message: 'x', content: '', branch: 'no' },
      404,
      'Branch no not found',
    ],
    ['GET /repos/octo/demo/commits/no/check-runs', undefined, 422, 'No commit found for SHA: no'],
    [
      'POST /repos/octo/demo/statuses/main',
      { state: 'green' },
      422,
      'Validation Failed',
      invalid('Status', 'custom', 'state', 'State is not included in the list'),
    ],
  ])('%s with %j: %i %s', async (request, body, status, message, errors) => {
    expect(await answerOf(await call(sandbox, request, headers, body))).toEqual(
      refusal(status, message, errors),
    )
    expect([sandbox.state.comments, sandbox.state.merges]).toEqual([[], []])
  })

  it('of what is not JSON, or over 1 MiB', async () => {
    const url = `${sandbox.url}/api/v3${DEMO}/issues/1/comments`
    const post = async (body: string) => answerOf(await fetch(url, { method: 'POST', headers, body }))
    expect(await post('{"body":')).toEqual(refusal(400, 'Problems parsing JSON'))
    expect(await post('x'.repeat(1_048_577))).toEqual(refusal(413, 'Request too large'))
  })
})
