import { describe, expect, it } from 'vitest'
import { answerOf, call, json, refusal, signIn, start } from '../rig.js'

const MERGE = 'PUT /repos/octo/demo/pulls/2/merge'
const SHA = expect.stringMatching(/^[0-9a-f]{40}$/)

describe('a merge', () => {
  it('merges once and closes the pull request', async () => {
    await using sandbox = await start()
    const headers = await signIn(sandbox)
    const pull = () => json<{ head: { sha: string } }>(call(sandbox, 'GET /repos/octo/demo/pulls/2', headers))
    const before = await pull()
    expect(before).toMatchObject({ state: 'open', merged: false, mergeable: true, mergeable_state: 'clean' })

    const how = { merge_method: 'squash', commit_title: 'Greet', commit_message: 'warmly' }
    const answer = await call(sandbox, MERGE, headers, { ...how, sha: before.head.sha })
    const message = 'Pull Request successfully merged'
    const { sha, ...rest } = await json<{ sha: string }>(answer)
    expect([answer.status, sha, rest]).toEqual([200, SHA, { merged: true, message }])

    expect(await pull()).toMatchObject({
      state: 'closed',
      merged: true,
      merged_at: '2026-05-04T03:02:01Z',
      merged_by: { login: 'octo' },
      merge_commit_sha: sha,
      mergeable: null,
    })
    expect(sandbox.state.merges).toEqual([
      {
        repo: 'octo/demo',
        pullNumber: 2,
        method: 'squash',
        title: 'Greet',
        message: 'warmly',
        sha,
        user: 'octo',
        mergedAt: '2026-05-04T03:02:01Z',
      },
    ])
    expect(await answerOf(await call(sandbox, MERGE, headers))).toEqual(
      refusal(405, 'Pull Request is not mergeable'),
    )
  })

  it('requires no body', async () => {
    await using sandbox = await start()
    expect((await call(sandbox, MERGE, await signIn(sandbox))).status).toBe(200)
    expect(sandbox.state.merges).toMatchObject([{ method: 'merge', title: undefined, message: undefined }])
  })

  it.each([
    [
      'another head is expected',
      MERGE,
      { sha: '0'.repeat(40) },
      409,
      'Head branch was modified. Review and try the merge again.',
    ],
    ['it conflicts', 'PUT /repos/octo/demo/pulls/3/merge', {}, 405, 'Pull Request is not mergeable'],
    ['it is an issue', 'PUT /repos/octo/demo/pulls/1/merge', {}, 404, 'Not Found'],
    ['it is not there', 'PUT /repos/octo/demo/pulls/99/merge', {}, 404, 'Not Found'],
    [
      'the method is unknown',
      MERGE,
      { merge_method: 'octopus' },
      422,
      'Invalid request.\n\n"octopus" is not a member of ["merge", "squash", "rebase"].',
    ],
  ])('is refused when %s', async (_, request, body, status, message) => {
    await using sandbox = await start()
    expect(await answerOf(await call(sandbox, request, await signIn(sandbox), body))).toEqual(
      refusal(status, message),
    )
    expect(sandbox.state.merges).toEqual([])
  })
})
