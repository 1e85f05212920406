import { Gitlab } from '@gitbeaker/rest'
import { describe, expect, it } from 'vitest'
import { fakeGitLab, GITLAB_REPO as PROJECT } from '../kit/gitlab.js'
import { gitlabEvent, gitlabPush } from '../kit/gitlab-hooks.js'
import { receiver } from '../kit/receiver.js'

// The stand-in for GitLab, as a client sees it that is not relay's.

const HEAD = 'a'.repeat(40)
const OTHER = 'b'.repeat(40)

/** The status and the words with which a call is refused. */
async function refusal(call: Promise<unknown>): Promise<unknown> {
  const error = await call.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  const { response, description } = Object(Object(error).cause)
  return [Object(response).status, description]
}

async function rig() {
  const host = await fakeGitLab()
  const api = new Gitlab({ host: host.url, token: host.token() })
  return { host, api, [Symbol.asyncDispose]: () => host[Symbol.asyncDispose]() }
}

describe('@gitbeaker/rest at the stand-in', () => {
  it('reads the user and the token, and is refused with a wrong one', async () => {
    await using here = await rig()
    const { host, api } = here
    expect(await api.Users.showCurrentUser()).toMatchObject({ username: 'mona', state: 'active' })
    expect(await api.PersonalAccessTokens.show()).toMatchObject({ active: true, scopes: ['api'] })
    const stranger = new Gitlab({ host: host.url, token: 'glpat-unknown' })
    expect(await refusal(stranger.Users.showCurrentUser())).toEqual([401, '401 Unauthorized'])
    const narrow = new Gitlab({ host: host.url, token: host.token({ scopes: ['read_repository'] }) })
    expect(await refusal(narrow.Users.showCurrentUser())).toEqual([403, 'insufficient_scope'])
  })

  it('writes, reads and changes notes', async () => {
    await using here = await rig()
    const { MergeRequestNotes, IssueNotes } = here.api
    expect(await IssueNotes.create(PROJECT, 2, 'hello')).toMatchObject({
      body: 'hello',
      author: { username: 'mona' },
    })
    expect(await IssueNotes.create(PROJECT, 2, '/close')).toEqual({
      commands_changes: { state_event: 'close' },
      summary: ['Closed this issue.'],
    })
    const { id } = await MergeRequestNotes.create(PROJECT, 2, 'hello')
    const all = await MergeRequestNotes.all(PROJECT, 2, { sort: 'asc', orderBy: 'created_at' })
    expect(all.map((note) => [note.id, note.body])).toEqual([[id, 'hello']])
    expect(await MergeRequestNotes.edit(PROJECT, 2, id, { body: 'changed' })).toMatchObject({
      body: 'changed',
    })
    expect(await refusal(IssueNotes.create(PROJECT, 9, 'x'))).toEqual([404, '404 Not found'])
  })

  it('awards an emoji once', async () => {
    await using here = await rig()
    const { IssueAwardEmojis, MergeRequestNotes, MergeRequestNoteAwardEmojis } = here.api
    expect(await IssueAwardEmojis.award(PROJECT, 2, 'thumbsup')).toMatchObject({ name: 'thumbsup' })
    expect(await refusal(IssueAwardEmojis.award(PROJECT, 2, 'thumbsup'))).toEqual([
      404,
      '404 Award Emoji ["Name has already been taken"] Not Found',
    ])
    const { id } = await MergeRequestNotes.create(PROJECT, 2, 'hello')
    await MergeRequestNoteAwardEmojis.award(PROJECT, 2, id, 'rocket')
    const all = await MergeRequestNoteAwardEmojis.all(PROJECT, 2, id)
    expect(all.map(({ name }) => name)).toEqual(['rocket'])
  })

  it('merges the head that it names, once', async () => {
    await using here = await rig()
    const { MergeRequests } = here.api
    expect(await MergeRequests.show(PROJECT, 2)).toMatchObject({
      detailed_merge_status: 'mergeable',
      sha: HEAD,
    })
    expect(await refusal(MergeRequests.accept(PROJECT, 2, { sha: OTHER }))).toEqual([
      409,
      `SHA does not match HEAD of source branch: ${HEAD}`,
    ])
    expect(await MergeRequests.accept(PROJECT, 2, { sha: HEAD, squash: true })).toMatchObject({
      state: 'merged',
      squash_commit_sha: expect.stringMatching(/^[0-9a-f]{40}$/),
    })
    expect(await refusal(MergeRequests.accept(PROJECT, 2))).toEqual([405, '405 Method Not Allowed'])
  })

  it('repeats five events a minute through all hooks of a project, and none through a paused one', async () => {
    await using here = await rig()
    await using target = await receiver()
    const { host, api } = here
    const { ProjectHooks } = api
    const all = [await ProjectHooks.add(PROJECT, target.url), await ProjectHooks.add(PROJECT, target.url)]
    await gitlabEvent(host.state.hooks, 'push_hooks', gitlabPush())
    const again = async (n: number): Promise<readonly [number, unknown]> => {
      const [hook, entry] = [all[n]?.id, host.state.hooks.log[n]?.id]
      const url = `${host.url}/api/v4/projects/7/hooks/${hook}/events/${entry}/resend`
      const answer = await fetch(url, { method: 'POST', headers: { 'private-token': host.token() } })
      return [answer.status, await answer.json()]
    }
    for (const n of [0, 1, 0]) expect(await again(n)).toEqual([201, { response_status: 200 }])
    const [first] = host.state.hooks.all
    if (first) first.recentFailures = 40
    expect(await again(0)).toEqual([422, { message: 'Hook disabled' }])
    expect(await ProjectHooks.show(PROJECT, first?.id ?? 0)).toMatchObject({ alert_status: 'disabled' })
    expect(await again(1)).toEqual([201, { response_status: 200 }])
    const error = 'This endpoint has been requested too many times. Try again later.'
    expect(await again(1)).toEqual([429, { message: { error } }])
  })

  it('adds a hook, changes it and removes it', async () => {
    await using here = await rig()
    await using target = await receiver()
    const { ProjectHooks } = here.api
    const { id } = await ProjectHooks.add(PROJECT, target.url, { pushEvents: true, token: 's3cret' })
    const switches = async (): Promise<unknown> =>
      (await ProjectHooks.all(PROJECT)).map((hook) => [hook.id, hook.url, hook.push_events, hook.note_events])
    expect(await switches()).toEqual([[id, target.url, true, false]])
    await ProjectHooks.edit(PROJECT, id, target.url, { noteEvents: true })
    expect(await switches()).toEqual([[id, target.url, true, true]])
    await ProjectHooks.remove(PROJECT, id)
    expect(await switches()).toEqual([])
  })
})
