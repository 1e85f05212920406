import { beforeEach, describe, expect, it } from 'vitest'
import {
  GITLAB_HEAD,
  GITLAB_MERGED,
  GITLAB_PUSHED,
  type GitLabPipeline,
  type GitLabStatus,
} from '../kit/gitlab-subjects.js'
import { place } from '../kit/place.js'
import { fails, prints } from '../kit/run.js'
import { fresh, json, notes } from './fixture.js'

const here = fresh(() => place({ host: 'gitlab', gitlab: { path: '/git' }, signedIn: true }))
const subjects = () => here.gitlab.state.subjects
const notesOf = (type: 'Issue' | 'MergeRequest', iid: number) =>
  subjects()
    .all.find((each) => each.type === type && each.iid === iid)
    ?.notes.map(({ body }) => body)
const page = (rest: string) => `${here.gitlab.url}/group/sub/demo/-/${rest}`
const ISSUE = 'group/sub/demo#2'
const PULL = 'group/sub/demo!2'

describe('relay comment at a GitLab', () => {
  it('writes notes on issues and merge requests of one number, by all forms of their names', async () => {
    expect(await here.run('comment', ISSUE, 'one')).toEqual(prints(`${page('issues/2#note_1')}\n`))
    expect(await here.run('comment', PULL, 'two')).toEqual(prints(`${page('merge_requests/2#note_2')}\n`))
    for (const at of ['issues/2', 'work_items/2', 'merge_requests/2/diffs?w=1#note_2'])
      expect((await here.run('comment', page(at), at)).code).toBe(0)
    for (const at of ['issues/2', 'work_items/2?show=x', 'merge_requests/2/diffs#note_2'])
      expect(await here.run('comment', `group/sub/demo/-/${at}`, 'x', '--dry-run')).toEqual(
        notes(
          `would comment on group/sub/demo${at.startsWith('m') ? '!' : '#'}2 (1 byte) at ${here.gitlab.url} as ada\n`,
        ),
      )
    expect(notesOf('Issue', 2)).toEqual(['one', 'issues/2', 'work_items/2'])
    expect(notesOf('MergeRequest', 2)).toEqual(['two', 'merge_requests/2/diffs?w=1#note_2'])
  })

  it('refuses a line that GitLab would carry out, unless --quick-actions is given', async () => {
    const why =
      'GitLab would carry out a line that begins with a slash, as a quick action: "/close". Allow quick actions, or put another character before it'
    for (const body of ['Done.\n/close', 'Done.\n/\rclose', '\r/close'])
      expect(await here.run('comment', ISSUE, body)).toEqual(fails(2, why))
    expect(notesOf('Issue', 2)).toEqual([])
    expect((await here.run('comment', ISSUE, 'Done.\n/close', '--quick-actions')).code).toBe(0)
    expect(notesOf('Issue', 2)).toEqual(['Done.'])
    const note = 'the code host carried out its quick actions, and made no comment\n'
    const alone = await here.run('comment', ISSUE, '/close', '--quick-actions')
    expect(alone).toEqual({ code: 0, out: `${page('issues/2')}\n`, err: note })
  })

  it('edits the comment with the same key, past notes of the system and of others', async () => {
    const { all } = subjects()
    const other = { id: 90, body: '<!-- relay-sticky: ci -->\nnot mine', username: 'eve', system: false }
    const system = Array.from({ length: 60 }, (_, i) => ({ ...other, id: i + 100, system: true }))
    all[0]?.notes.push(other, ...system)
    const first = await json(here.run('comment', ISSUE, 'red', '--sticky', 'ci', '--json'))
    const second = await json(here.run('comment', ISSUE, 'green', '--sticky', 'ci', '--json'))
    expect([first.created, second.created, second.id]).toEqual([true, false, first.id])
    expect(notesOf('Issue', 2)?.at(-1)).toBe('<!-- relay-sticky: ci -->\ngreen')
  })

  it.each([
    ['group/sub/demo#9', 'GitLab refused: 404 Not found (no such repository or number, or no access to it)'],
    [
      'group/other#2',
      'GitLab refused: 404 Project Not Found (no such repository or number, or no access to it)',
    ],
  ])('says that %s is not there, exit 8', async (target, why) => {
    expect(await here.run('comment', target, 'x')).toEqual(fails(8, why))
  })

  it('says for how long GitLab refuses, exit 8', async () => {
    const error = { error: 'This endpoint has been requested too many times. Try again later.' }
    here.gitlab.state.faults.push({ status: 429, body: { message: error } })
    const why = `GitLab refused: ${error.error}; try again in 60 s`
    expect(await here.run('comment', ISSUE, 'x')).toEqual(fails(8, why))
  })
})

describe('relay react at a GitLab', () => {
  it('awards an emoji to an issue, a merge request and a note, once', async () => {
    await here.run('comment', PULL, 'x')
    const note = page('merge_requests/2#note_1')
    for (const [target, name] of [
      [ISSUE, '+1'],
      [PULL, 'hooray'],
      [note, 'laugh'],
      [`${PULL}#note_1`, 'eyes'],
    ] as const) {
      expect(await here.run('react', target, name)).toEqual(prints(`${name}\n`))
      const again = await json(here.run('react', target, name, '--json'))
      expect(again).toMatchObject({ content: name, created: false, id: expect.any(Number) })
    }
    expect([...subjects().awards].map(([key, all]) => [key, all.map(({ name }) => name)])).toEqual([
      ['Issue 2 ', ['thumbsup']],
      ['MergeRequest 2 ', ['tada']],
      ['MergeRequest 2 1', ['laughing', 'eyes']],
    ])
  })

  it('says that a note is not there, exit 8', async () => {
    const { code, err } = await here.run('react', page('issues/2#note_7'), '+1')
    expect([code, err]).toEqual([8, expect.stringContaining('GitLab refused: 404 Not found')])
  })
})

describe('relay merge at a GitLab', () => {
  /** Looks at the merge request come soon after another. */
  const seams = { limits: { mergeDelay: 1, mergeTime: 2000 } }
  const merge = (...argv: string[]) => here.runWith({ seams }, 'merge', PULL, ...argv)

  it('merges exactly the head that it read, and prints the commit', async () => {
    expect(await merge()).toEqual(prints(`${GITLAB_MERGED}\n`))
    expect(subjects().merges).toEqual([{ sha: GITLAB_HEAD }])
    expect(await merge()).toEqual(fails(8, 'Not merged: it is already merged'))
  })

  it('squashes with the text of the commit', async () => {
    const texts = ['--title', 'Add a greeting', '--message', 'For octo.']
    expect(await merge('--method', 'squash', ...texts)).toEqual(prints(`${GITLAB_MERGED}\n`))
    const squash_commit_message = 'Add a greeting\n\nFor octo.'
    expect(subjects().merges).toEqual([{ sha: GITLAB_HEAD, squash: true, squash_commit_message }])
  })

  it('refuses an issue, another method and another code host', async () => {
    const issue = await here.run('merge', ISSUE)
    expect(issue).toEqual(fails(2, `${ISSUE} is an issue. Give the merge request as ${PULL}`))
    const { code, err } = await merge('--method', 'rebase')
    expect([code, err]).toEqual([8, expect.stringContaining('GitLab rebases a merge request apart')])
    const elsewhere = await here.run('merge', 'https://gitlab.com/group/sub/demo/-/merge_requests/2')
    expect(elsewhere.err).toContain('The address is on https://gitlab.com, but this profile uses ')
    expect(subjects().merges).toEqual([])
  })

  it.each<[string, string, Pick<GitLabPipeline, 'status'> | undefined, string | undefined]>([
    ['a draft', 'draft_status', undefined, undefined],
    ['one without approvals', 'not_approved', { status: 'success' }, undefined],
    ['one with a conflict', 'conflict', undefined, 'Not merged: it conflicts with its base branch'],
    [
      'one whose pipeline has failed',
      'mergeable',
      { status: 'failed' },
      'Not merged: its pipeline has not succeeded (failed), and GitLab merges by itself only after one that has',
    ],
    ['one that is behind', 'need_rebase', { status: 'success' }, 'Not merged: its branch must first be'],
  ])('--auto of %s', async (_, status, pipeline, refused) => {
    Object.assign(subjects(), { status, pipeline: pipeline && { id: 5, ...pipeline } })
    const { code, err } = await merge('--auto')
    const says = refused ?? 'is not merged yet. The code host merges it'
    expect([code, err, subjects().autoMerges]).toEqual([
      refused === undefined ? 0 : 8,
      expect.stringContaining(says),
      refused === undefined ? 1 : 0,
    ])
  })

  it('lets GitLab merge once the pipeline has succeeded', async () => {
    subjects().pipeline = { id: 31, status: 'running' }
    subjects().status = 'ci_still_running'
    const { code, out, err } = await merge('--auto')
    expect([code, out]).toEqual([0, ''])
    expect(err).toBe(`${PULL} is not merged yet. The code host merges it when its checks have passed\n`)
    expect(subjects()).toMatchObject({
      autoMerges: 1,
      merges: [{ auto_merge: true, merge_when_pipeline_succeeds: true }],
    })
  })

  it.each([2, 3, 4, 5, 6, 7])('tries again while GitLab checks it, for %i looks', async (looks) => {
    Object.assign(subjects(), { status: 'checking', looks })
    const { code, out, err } = await merge()
    expect([code, out]).toEqual([0, `${GITLAB_MERGED}\n`])
    expect(err).toBe(
      `${PULL} is not merged yet: GitLab is checking whether it can be merged; trying again for up to 2 s\n`,
    )
    expect(subjects().merges.length).toBeGreaterThan(1)
  })

  it('gives up in the end', async () => {
    Object.assign(subjects(), { status: 'checking', looks: Infinity })
    const short = { seams: { limits: { mergeDelay: 1, mergeTime: 20 } } }
    const { code, err } = await here.runWith(short, 'merge', PULL)
    expect([code, err]).toEqual([
      8,
      expect.stringContaining('error: Not merged: GitLab is checking whether it can be merged; try again\n'),
    ])
  })

  it.each<[string, () => void, string]>([
    ['draft', () => void (subjects().status = 'draft_status'), 'it is a draft'],
    ['conflict', () => void (subjects().status = 'conflict'), 'it conflicts with its base branch'],
    ['approval', () => void (subjects().status = 'not_approved'), 'approvals are missing'],
    ['pipeline', () => void (subjects().status = 'ci_must_pass'), 'its pipeline must succeed first'],
    ['unknown reason', () => void (subjects().status = 'new'), 'GitLab says: 405 Method Not Allowed'],
    [
      'hook of the server',
      () => void (subjects().mergeError = 'pre-receive hook declined'),
      'GitLab says: Branch cannot be merged: pre-receive hook declined',
    ],
    ['rights', () => void subjects().mayNotMerge.add('mona'), 'this account or its token may not merge it'],
  ])('says what is in the way: %s', async (_, prepare, why) => {
    prepare()
    expect(await merge()).toEqual(fails(8, `Not merged: ${why}`))
    expect(subjects().merged).toBeUndefined()
  })

  it('does not merge another head than --match-head, exit 8', async () => {
    const { code, err } = await merge('--match-head', GITLAB_PUSHED)
    expect([code, err]).toEqual([8, `error: Not merged: its head is now another commit, ${GITLAB_HEAD}\n`])
  })

  it('takes a token that GitLab no longer knows for no right, exit 4', async () => {
    for (const token of here.gitlab.state.oauth.tokens.values()) token.revoked = true
    expect((await merge()).code).toBe(4)
  })

  const job = (id: number, name: string, status: string, allow_failure = false): GitLabStatus => ({
    id,
    name,
    status,
    allow_failure,
  })
  it.each<[string, { pipeline?: GitLabPipeline; statuses?: GitLabStatus[] }, string | undefined]>([
    ['nothing', {}, 'has no checks and no statuses. They may not have begun; try again later'],
    ['a pipeline', { pipeline: { id: 3, status: 'success' } }, undefined],
    [
      'a pipeline that runs',
      { pipeline: { id: 3, status: 'running' }, statuses: [job(1, 'test', 'running')] },
      'has not finished pipeline 3 (running), test (running)',
    ],
    [
      'the pipeline of an older head',
      { pipeline: { id: 3, status: 'success', sha: 'e'.repeat(40) }, statuses: [] },
      'has not finished pipeline 3 (pending)',
    ],
    [
      'the pipeline of a merge request, on a commit of its own',
      {
        pipeline: { id: 3, status: 'success', sha: 'e'.repeat(40), ref: 'refs/merge-requests/2/merge' },
        statuses: [],
      },
      undefined,
    ],
    [
      'an external status that failed',
      { pipeline: { id: 3, status: 'success' }, statuses: [job(1, 'ci/other', 'failed')] },
      'has not succeeded in ci/other (failed)',
    ],
    [
      'one that was reported again, one that may fail, and a manual job that nobody waits for',
      {
        pipeline: { id: 3, status: 'success' },
        statuses: [
          job(1, 'a', 'failed'),
          job(2, 'a', 'success'),
          job(3, 'b', 'failed', true),
          job(4, 'c', 'manual', true),
        ],
      },
      undefined,
    ],
  ])('--if-green: %s', async (_, state, why) => {
    Object.assign(subjects(), state)
    const ran = await merge('--if-green')
    const refused = fails(3, `${PULL} is not merged: its head ${GITLAB_HEAD.slice(0, 7)} ${why}`)
    expect(ran).toEqual(why === undefined ? prints(`${GITLAB_MERGED}\n`) : refused)
  })
})

describe('POST /api/* of a relay at a GitLab', () => {
  let address: string
  beforeEach(async () => {
    address = (await here.serve()).address
  })

  async function ask(name: string, body: object): Promise<readonly [number, unknown]> {
    const token = (await here.run('token')).out.trim()
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const answer = await fetch(`${address}/api/${name}`, {
      method: 'POST',
      headers,
      body: JSON.stringify(body),
    })
    return [answer.status, await answer.json()]
  }

  const where = { owner: 'group/sub', repo: 'demo' }

  it('takes an owner with slashes, and the number of an issue or a merge request', async () => {
    expect(await ask('comment', { ...where, issueNumber: 2, body: 'x' })).toEqual([
      200,
      { ok: true, id: 1, url: page('issues/2#note_1') },
    ])
    expect(await ask('comment', { ...where, pullNumber: 2, body: 'x' })).toEqual([
      200,
      { ok: true, id: 2, url: page('merge_requests/2#note_2') },
    ])
    const reacted = { ok: true, id: 3, content: '+1', created: true }
    expect(await ask('react', { ...where, pullNumber: 2, content: '+1', commentId: 2 })).toEqual([
      200,
      reacted,
    ])
    const merged = { ok: true, merged: true, sha: GITLAB_MERGED }
    expect(await ask('merge', { ...where, pullNumber: 2 })).toEqual([200, merged])
  })

  it.each<[string, object, string]>([
    [
      'both numbers',
      { ...where, issueNumber: 2, pullNumber: 2 },
      'pullNumber: not together with issueNumber',
    ],
    ['no number', where, 'issueNumber: required'],
    [
      'a path',
      { ...where, owner: 'group/../other', issueNumber: 2 },
      'owner: must be names with slashes between them, each 1 to 100 of A-Z a-z 0-9 . _ - and not . or ..',
    ],
  ])('refuses %s', async (_, fields, why) => {
    expect(await ask('comment', { ...fields, body: 'x' })).toEqual([
      400,
      { error: `Invalid request: ${why}` },
    ])
  })

  it('refuses quick actions unless they are wanted', async () => {
    const body = { ...where, issueNumber: 2, body: '/close' }
    expect(await ask('comment', body)).toEqual([
      400,
      { error: expect.stringContaining('quick action: "/close"') },
    ])
    const closed = { ok: true, id: null, url: page('issues/2') }
    expect(await ask('comment', { ...body, quickActions: true })).toEqual([200, closed])
  })
})

describe('a token of a GitLab that may only read', () => {
  it.each([
    ['comment', ISSUE, 'one'],
    ['comment', PULL, 'one', '--sticky', 'ci'],
    ['react', PULL, '+1'],
    ['merge', PULL],
  ])('has the scope named that it lacks: relay %s %s', async (...argv) => {
    await here.useToken(here.gitlab.token({ scopes: ['read_api'] }))
    const why =
      'GitLab refused: The request requires higher privileges than provided by the access token. The token needs one of the scopes api: sign in with that, by relay login'
    expect(await here.run(...argv)).toEqual(fails(8, why))
  })
})
