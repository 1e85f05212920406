import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Secret } from '../../../src/base/secret.js'
import type { Sandbox } from '../../../src/sandbox/sandbox.js'
import { type ScriptedServer, scriptedServer } from '../../helpers/scripted-server.js'
import { answerOf, call, json, refusal, signIn, start } from '../rig.js'

let sandbox: Sandbox
let receiver: ScriptedServer
let headers: { authorization: string }
beforeEach(async () => {
  receiver = await scriptedServer(() => ({}))
  const webhook = { url: () => receiver.url, secret: new Secret('hush') }
  sandbox = await start({ webhook, checkDuration: 1 })
  headers = await signIn(sandbox)
})
afterEach(async () => {
  await sandbox[Symbol.asyncDispose]()
  await receiver[Symbol.asyncDispose]()
})

interface Runs {
  readonly total_count: number
  readonly check_runs: { id: number; status: string; conclusion: string | null }[]
}
interface Suites {
  readonly total_count: number
  readonly check_suites: { id: number; status: string; conclusion: string | null }[]
}

const get = <T>(path: string): Promise<T> => json<T>(call(sandbox, `GET /repos/octo/demo${path}`, headers))
const push = (body: object): Promise<Response> =>
  call(sandbox, 'PUT /repos/octo/demo/contents/docs/hello.md', headers, { content: 'aGVsbG8=', ...body })
const pushed = async (body: object): Promise<string> => {
  const { commit } = await json<{ commit: { sha: string } }>(push({ message: 'Say hello', ...body }))
  return commit.sha
}
const report = (sha: string, body: object): Promise<Response> =>
  call(sandbox, `POST /repos/octo/demo/statuses/${sha}`, headers, body)
const headOf = async (pull: number): Promise<string> =>
  (await get<{ head: { sha: string } }>(`/pulls/${pull}`)).head.sha
const events = (): unknown[] =>
  receiver.received.map(({ headers, body }) => {
    const { action }: { action?: string } = JSON.parse(body)
    return [headers['x-github-event'], action]
  })

describe('writing a file', () => {
  it('pushes a commit to the branch and its pull request, and checks it', async () => {
    const before = await headOf(2)
    const answer = await push({ message: 'Say hello', branch: 'greeting' })
    const made = await answerOf(answer)
    const sha = await headOf(2)
    expect(made).toEqual({
      status: 201,
      body: {
        content: {
          type: 'file',
          name: 'hello.md',
          path: 'docs/hello.md',
          sha: 'b6fc4c620b67d95f953a5c1c1230aaab5db5a1b0',
          size: 5,
        },
        commit: {
          sha,
          html_url: `${sandbox.url}/octo/demo/commit/${sha}`,
          message: 'Say hello',
          parents: [{ sha: before }],
        },
      },
    })
    expect(sha).not.toBe(before)
    await sandbox.idle()
    expect(events()).toEqual([
      ['push', undefined],
      ['pull_request', 'synchronize'],
      ['check_run', 'completed'],
      ['check_suite', 'completed'],
    ])
    const [first, second, , last] = receiver.received.map(({ body }) => JSON.parse(body))
    expect(first).toMatchObject({ ref: 'refs/heads/greeting', before, after: sha })
    expect(second).toMatchObject({ number: 2, before, after: sha, pull_request: { head: { sha } } })
    expect(last.check_suite).toMatchObject({ head_sha: sha, head_branch: 'greeting', conclusion: 'success' })
    const { repository, pull_request: pull } = second
    const repo = { id: repository.id, url: repository.url, name: 'demo' }
    const listed = {
      url: pull.url,
      id: pull.id,
      number: 2,
      head: { ref: 'greeting', sha, repo },
      base: { ref: 'main', sha: pull.base.sha, repo },
    }
    expect(last.check_suite.pull_requests).toEqual([listed])
    expect((await get<Suites>(`/commits/${sha}/check-suites`)).check_suites).toMatchObject([
      { pull_requests: [listed] },
    ])
  })

  it('needs a branch that is there, a message and a content', async () => {
    expect(await answerOf(await push({ message: 'x', branch: 'none' }))).toEqual(
      refusal(404, 'Branch none not found'),
    )
    expect((await push({})).status).toBe(422)
    headers = await signIn(sandbox, 'read:user')
    expect((await push({ message: 'x' })).status).toBe(404)
  })
})

describe('the checks of a commit', () => {
  it('are found by its hash and its branch', async () => {
    const sha = await pushed({ branch: 'main' })
    await sandbox.idle()
    const byHash = await get<Runs>(`/commits/${sha}/check-runs`)
    expect(byHash).toMatchObject({
      total_count: 1,
      check_runs: [{ name: 'test', head_sha: sha, status: 'completed', conclusion: 'success' }],
    })
    for (const ref of ['main', 'heads/main']) expect(await get(`/commits/${ref}/check-runs`)).toEqual(byHash)
    expect(await get<Suites>(`/commits/${sha}/check-suites`)).toMatchObject({
      total_count: 1,
      check_suites: [
        { head_sha: sha, status: 'completed', conclusion: 'success', latest_check_runs_count: 1 },
      ],
    })
  })

  it('fail when the message has the word fail', async () => {
    await pushed({ message: 'Let it fail' })
    await sandbox.idle()
    const { check_runs: runs } = await get<Runs>('/commits/main/check-runs')
    expect(runs.map(({ conclusion }) => conclusion)).toEqual(['failure'])
  })

  it('are in progress at first, and abandoned when the sandbox closes', async () => {
    await using slow = await start({ checkDuration: 60_000 })
    headers = await signIn(slow)
    await call(slow, 'PUT /repos/octo/demo/contents/a', headers, { message: 'x', content: '' })
    const runs = await json<Runs>(call(slow, 'GET /repos/octo/demo/commits/main/check-runs', headers))
    expect(runs.check_runs).toMatchObject([{ status: 'in_progress', conclusion: null, completed_at: null }])
  })

  it('are none for a commit that was not pushed here, and an error for one that is unknown', async () => {
    expect(await get(`/commits/${await headOf(2)}/check-runs`)).toEqual({ total_count: 0, check_runs: [] })
    const unknown = await call(sandbox, 'GET /repos/octo/demo/commits/none/check-runs', headers)
    expect(await answerOf(unknown)).toEqual(refusal(422, 'No commit found for SHA: none'))
    sandbox.faults.next('checks', '502')
    expect((await call(sandbox, 'GET /repos/octo/demo/commits/main/status', headers)).status).toBe(502)
  })
})

describe('the statuses of a commit', () => {
  it('are combined: the newest of each context decides', async () => {
    const sha = await headOf(2)
    const state = async (): Promise<unknown> => (await get<{ state: string }>(`/commits/${sha}/status`)).state
    expect(await state()).toBe('pending')
    await report(sha, { state: 'success', context: 'build', description: 'Built' })
    expect(await state()).toBe('success')
    await report(sha, { state: 'pending', context: 'deploy', target_url: 'https://ci.example.com/1' })
    expect(await state()).toBe('pending')
    await report(sha, { state: 'error', context: 'deploy' })
    expect(await state()).toBe('failure')
    await report(sha, { state: 'success', context: 'deploy' })
    expect(await get(`/commits/greeting/status?per_page=1`)).toMatchObject({
      state: 'success',
      sha,
      total_count: 2,
      statuses: [{ context: 'deploy', state: 'success', description: null, target_url: null }],
      repository: { full_name: 'octo/demo' },
    })
    await sandbox.idle()
    expect(events()).toEqual(Array.from({ length: 4 }, () => ['status', undefined]))
  })

  it('are refused without a state that is known', async () => {
    const sha = await headOf(2)
    const message = 'State is not included in the list'
    const error = { resource: 'Status', code: 'custom', field: 'state', message }
    expect(await answerOf(await report(sha, { state: 'green' }))).toEqual(
      refusal(422, 'Validation Failed', [error]),
    )
    expect((await report('0'.repeat(40), { state: 'success' })).status).toBe(422)
  })
})
