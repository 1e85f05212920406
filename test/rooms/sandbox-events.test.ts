import { describe, expect, it } from 'vitest'
import { Secret } from '../../src/base/secret.js'
import { anywhere } from '../../src/base/command-line.js'
import { commandWords, synthesize } from '../../src/replay/synthesize.js'
import { receiver, valuesOf } from '../kit/receiver.js'
import { answerOf, call, NOW, signIn, start } from './sandbox-rig.js'

const REPO = '/repos/octo/demo'
const SHA = expect.stringMatching(/^[\da-f]{40}$/)
const main = { ref: 'refs/heads/main', created: false, deleted: false, forced: false, base_ref: null }
const repository = { full_name: 'octo/demo', default_branch: 'main' }
const common = {
  repository: expect.objectContaining(repository),
  sender: expect.objectContaining({ login: 'octo' }),
}
const push = {
  ...main,
  ...common,
  before: SHA,
  after: SHA,
  pusher: { name: 'octo', email: 'octo@example.com' },
}
const checked = ['check_run', 'check_suite'].map((event): Sent => {
  const check = expect.objectContaining({ status: 'completed', conclusion: 'success', head_sha: SHA })
  return [event, { ...common, action: 'completed', [event]: check }]
})
const closed = {
  merged: true,
  state: 'closed',
  merge_commit_sha: SHA,
  merged_by: expect.anything(),
  mergeable: null,
}
const merged: Sent = [
  'pull_request',
  { ...common, action: 'closed', number: 2, pull_request: expect.objectContaining(closed) },
]
const FROM = 'Merge pull request #2 from octo/greeting'

type Sent = readonly [event: string, payload: object]

/** A push with commits of these messages, the last of which is the head. */
function pushOf(...messages: string[]): Sent {
  const commits = messages.map((message) => expect.objectContaining({ id: SHA, message, distinct: true }))
  return ['push', { ...push, commits, head_commit: commits.at(-1) }]
}

/**
 * Acts, and the events that GitHub documents for them: docs.github.com/webhooks/webhook-events-and-payloads. That each payload has
 * every field of GitHub's examples is a test of its own.
 */
const ACTS: readonly [act: string, request: string, body: object, events: readonly Sent[]][] = [
  [
    'a comment',
    `POST ${REPO}/issues/1/comments`,
    { body: 'x' },
    [['issue_comment', { ...common, action: 'created', comment: expect.objectContaining({ body: 'x' }) }]],
  ],
  [
    'a merge',
    `PUT ${REPO}/pulls/2/merge`,
    {},
    [merged, pushOf('Add a greeting', `${FROM}\n\nAdd a greeting`), ...checked],
  ],
  [
    'a merge with texts',
    `PUT ${REPO}/pulls/2/merge`,
    { commit_title: 'T', commit_message: 'M' },
    [merged, pushOf('Add a greeting', 'T\n\nM'), ...checked],
  ],
  [
    'a merge by squashing',
    `PUT ${REPO}/pulls/2/merge`,
    { merge_method: 'squash' },
    [merged, pushOf('Add a greeting (#2)'), ...checked],
  ],
  [
    'a merge by rebasing',
    `PUT ${REPO}/pulls/2/merge`,
    { merge_method: 'rebase' },
    [merged, pushOf('Add a greeting'), ...checked],
  ],
  [
    'a push to the default branch',
    `PUT ${REPO}/contents/a.md`,
    { message: 'Say it', content: '' },
    [pushOf('Say it'), ...checked],
  ],
  [
    'a push to the branch of a pull request',
    `PUT ${REPO}/contents/a.md`,
    { message: 'Say it', content: '', branch: 'greeting' },
    [
      ['push', { ...pushOf('Say it')[1], ref: 'refs/heads/greeting' }],
      ['pull_request', { ...common, action: 'synchronize', number: 2, before: SHA, after: SHA }],
      ...checked,
    ],
  ],
  [
    'a status',
    `POST ${REPO}/statuses/main`,
    { state: 'success' },
    [['status', { ...common, state: 'success', sha: SHA }]],
  ],
  ['a reaction', `POST ${REPO}/issues/1/reactions`, { content: 'heart' }, []],
]

/** Fields of an issue or a pull request. */
interface Shown {
  readonly title: string
  readonly locked: boolean
  readonly merged?: boolean
  readonly mergeable: boolean | null
  readonly merge_commit_sha: string
  readonly head: { readonly sha: string }
  readonly base: { readonly ref: string }
}

async function sandboxWithReceiver() {
  const app = await receiver()
  const webhook = { url: () => app.url, secret: new Secret('x') }
  const sandbox = await start({ webhook, checkDuration: 1, clock: () => NOW })
  const headers = await signIn(sandbox)
  const sent = async (): Promise<(readonly [string, Record<string, unknown>])[]> => {
    await sandbox.idle()
    return app.received.map((each) => [
      valuesOf(each, 'x-github-event').join(),
      JSON.parse(each.body.toString()),
    ])
  }
  return {
    sandbox,
    headers,
    sent,
    async [Symbol.asyncDispose]() {
      await sandbox[Symbol.asyncDispose]()
      await app[Symbol.asyncDispose]()
    },
  }
}

describe('the sandbox sends the events that GitHub documents, in order', () => {
  it.each(ACTS)('of %s', async (_, request, body, events) => {
    await using here = await sandboxWithReceiver()
    const { status } = await answerOf(call(here.sandbox, request, here.headers, body))
    expect(status).toBeLessThan(300)
    expect(await here.sent()).toEqual(
      events.map(([event, payload]) => [event, expect.objectContaining(payload)]),
    )
  })

  it('of a merge, whose commit is the head of the base branch from then on', async () => {
    await using here = await sandboxWithReceiver()
    const head = async (): Promise<unknown> =>
      Object(await answerOf(call(here.sandbox, `GET ${REPO}/commits/main/status`, here.headers))).body.sha
    const before = await head()
    for (const number of [2, 5]) await call(here.sandbox, `PUT ${REPO}/pulls/${number}/merge`, here.headers)
    const pushes = (await here.sent()).flatMap(([event, payload]) => (event === 'push' ? [payload] : []))
    const [first, second] = pushes
    expect([first?.['before'], first?.['after']]).toEqual([before, second?.['before']])
    expect(await head()).toBe(second?.['after'])
  })
})

describe('the pages of the sandbox and its API agree', () => {
  it('about each issue and pull request, before and after what is done', async () => {
    await using here = await sandboxWithReceiver()
    const { sandbox, headers } = here
    const compare = async (): Promise<void> => {
      for (const { repo, number, pull, title } of sandbox.state.issues.filter(
        ({ repo }) => repo === 'octo/demo',
      )) {
        const page = await (
          await fetch(`${sandbox.url}/${repo}/${pull ? 'pull' : 'issues'}/${number}`)
        ).text()
        const list = await (await fetch(`${sandbox.url}/${repo}`)).text()
        const api: Shown = Object(
          await answerOf(call(sandbox, `GET ${REPO}/${pull ? 'pulls' : 'issues'}/${number}`, headers)),
        ).body
        const badge = api.merged ? 'Merged' : api.locked ? 'Locked' : 'Open'
        expect([page.includes(`>${badge}<`), list.includes(title), api.title]).toEqual([true, true, title])
        if (!pull) continue
        expect(page).toContain(`<code>${api.base.ref}</code>`)
        const shown = api.merged === true ? api.merge_commit_sha : api.head.sha
        expect(page).toContain(shown.slice(0, 7))
        expect(page.includes('conflicts with</strong>')).toBe(api.mergeable === false)
      }
    }
    await compare()
    await call(sandbox, `PUT ${REPO}/contents/a.md`, headers, { message: 'm', content: '', branch: 'typo' })
    await call(sandbox, `PUT ${REPO}/pulls/2/merge`, headers)
    await call(sandbox, `POST ${REPO}/issues/1/comments`, headers, { body: 'hello' })
    await compare()
  })
})

it.each([
  'push',
  'pull_request.opened',
  'check_suite.completed',
  'release.published',
  'workflow_run.requested',
])('an example of %s names no other branch than the repository has as its default', (event) => {
  const { body } = synthesize('github', event, NOW, { words: commandWords(anywhere) })
  expect(body).not.toMatch(/"(?:refs\/heads\/|\w+:)?master"/)
  expect(JSON.parse(String(body))).toMatchObject({ repository: { default_branch: 'main' } })
})
