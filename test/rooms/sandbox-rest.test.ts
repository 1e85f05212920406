import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Operation } from '../../src/sandbox/fault.js'
import type { Sandbox } from '../../src/sandbox/sandbox.js'
import { sign } from '../kit/delivery.js'
import { exchange, requestText } from '../kit/http.js'
import { agree } from '../kit/pages.js'
import { type Receiver, receiver, valuesOf } from '../kit/receiver.js'
import { answerOf, call, json, refusal, signIn, start } from './sandbox-rig.js'

let sandbox: Sandbox
let headers: { authorization: string }
beforeAll(async () => {
  sandbox = await start({ checkDuration: 1 })
  headers = await signIn(sandbox, 'repo read:user')
})
afterAll(() => sandbox[Symbol.asyncDispose]())

const DEMO = '/repos/octo/demo'
/** Milliseconds by which an answer comes late: far more than a webhook takes. */
const LATE = 100

describe('the refusals of the REST API', () => {
  const comment = 'POST /repos/octo/demo/issues/1/comments'
  const merge = 'PUT /repos/octo/demo/pulls/2/merge'
  const react = 'POST /repos/octo/demo/issues/1/reactions'
  const invalid = (resource: string, code: string, field: string, message?: string) => [
    { resource, code, field, ...(message !== undefined && { message }) },
  ]
  const unprocessable = (message: string) => invalid('IssueComment', 'unprocessable', 'data', message)

  it.each<[string, unknown, number, string, object[]?]>([
    ['GET /nothing', undefined, 404, 'Not Found'],
    ['POST /user', {}, 404, 'Not Found'],
    ['GET /repos/octo/demo/pulls/1', undefined, 404, 'Not Found'],
    ['GET /repos/octo/demo/issues/01x', undefined, 404, 'Not Found'],
    [comment, { body: ' \n' }, 422, 'Validation Failed', unprocessable("Body can't be blank")],
    [comment, {}, 422, 'Invalid request.\n\n"body" wasn\'t supplied.'],
    [comment, { body: 1 }, 422, "Invalid request.\n\nFor 'properties/body', 1 is not a string."],
    [comment, [], 400, 'Body should be a JSON object'],
    ['PATCH /repos/octo/demo/issues/comments/1', { body: 'x' }, 404, 'Not Found'],
    [react, { content: 'thumbs' }, 422, 'Validation Failed', invalid('Reaction', 'invalid', 'content')],
    ['POST /repos/octo/demo/pulls/comments/1/reactions', { content: 'heart' }, 404, 'Not Found'],
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
    expect(await answerOf(call(sandbox, request, headers, body))).toEqual(refusal(status, message, errors))
    expect([sandbox.state.comments, sandbox.state.merges]).toEqual([[], []])
  })

  it.each([comment, merge, 'GET /user', `GET ${DEMO}/hooks`, `GET ${DEMO}/installation`, 'GET /app'])(
    '%s without a token',
    async (request) => {
      const unnamed = refusal(401, 'Requires authentication')
      expect(await answerOf(call(sandbox, request, {}))).toEqual(unnamed)
      expect(await answerOf(call(sandbox, request, { authorization: 'Basic eDp5' }))).toEqual(unnamed)
      expect((await call(sandbox, request, { authorization: 'Bearer x' })).status).toBe(401)
    },
  )

  it('a request without User-Agent', async () => {
    const request = requestText('GET', '/api/v3/user', headers)
    const { status, body } = await exchange(Number(new URL(sandbox.url).port), request)
    expect([status, body]).toEqual([403, expect.stringContaining('has a User-Agent header')])
  })
})

it.each<[string, string, object]>([
  ['a repository in any case', 'GET /repos/OCTO/Demo', { full_name: 'octo/demo' }],
  ['a reference with slashes', `GET ${DEMO}/commits/heads/main/status`, { statuses: [] }],
  ['a reference with slashes', `GET ${DEMO}/commits/refs/heads/main/check-runs`, { check_runs: [] }],
])('the REST API finds %s, also for the scheme "token": %s', async (_, request, body) => {
  const authorization = headers.authorization.replace('Bearer', 'token')
  expect(await answerOf(call(sandbox, request, { authorization }))).toMatchObject({ status: 200, body })
})

interface HookAnswer {
  readonly id: number
  readonly events: readonly string[]
  readonly config: Readonly<Record<string, string>>
}

describe('a hook', () => {
  let app: Receiver
  beforeAll(async () => void (app = await receiver()))
  afterAll(() => app[Symbol.asyncDispose]())
  beforeEach(async () => {
    for (const { id } of await json<HookAnswer[]>(hooks('GET '))) await hooks(`DELETE /${id}`)
    await sandbox.idle()
  })

  const hooks = (request: string, body?: unknown): Promise<Response> =>
    call(sandbox, request.replace(' ', ` ${DEMO}/hooks`), headers, body)
  const config = (path: string) => ({ url: app.url + path, content_type: 'json', secret: 'hush' })
  const create = (path: string, events: readonly string[]): Promise<HookAnswer> =>
    json<HookAnswer>(hooks('POST ', { config: config(path), events }))
  const comment = async (body: string): Promise<void> => {
    await call(sandbox, `POST ${DEMO}/issues/1/comments`, headers, { body })
    await sandbox.idle()
  }
  const invalid = (error: object): object =>
    refusal(422, 'Validation Failed', [{ resource: 'Hook', ...error }])

  it('has GitHub’s defaults: the push event, as a form, unsigned', async () => {
    const made = await json<HookAnswer>(hooks('POST ', { config: { url: `${app.url}/hook` } }))
    expect(made).toMatchObject({
      active: true,
      events: ['push'],
      config: { content_type: 'form', insecure_ssl: '0', url: `${app.url}/hook` },
    })
    await sandbox.idle()
    const ping = app.received.at(-1)
    if (!ping) throw new Error('nothing came')
    expect(valuesOf(ping, 'x-hub-signature-256')).toEqual([])
    const payload = new URLSearchParams(ping.body.toString()).get('payload') ?? ''
    expect(JSON.parse(payload)).toMatchObject({ hook_id: made.id })
  })

  it('signs a form as it is sent, and shows no secret', async () => {
    const made = await (await hooks('POST ', { config: { ...config('/'), content_type: 'form' } })).text()
    await sandbox.idle()
    const ping = app.received.at(-1)
    if (!ping) throw new Error('nothing came')
    expect(valuesOf(ping, 'x-hub-signature-256')).toEqual([sign('hush', ping.body)])
    const payload = new URLSearchParams(ping.body.toString()).get('payload')
    for (const text of [made, await (await hooks('GET ')).text(), payload])
      expect(text).toContain('"secret":"********"')
  })

  /** Milliseconds from a request, which is answered {@link LATE} ms after it was done, to the arrival of what it causes. */
  const arrivalOf = async (operation: Operation, request: () => Promise<Response>): Promise<number> => {
    sandbox.faults.next(operation, { kind: 'late', ms: LATE })
    const [before, began] = [app.received.length, performance.now()]
    expect((await request()).ok).toBe(true)
    await app.has(before + 1)
    return (app.received[before]?.at ?? 0) - began
  }

  it.each<[Operation, string, object?]>([
    ['comment', 'POST /issues/1/comments', { body: 'x' }],
    ['merge', 'PUT /pulls/5/merge'],
    ['push', 'PUT /contents/a', { message: 'x', content: '' }],
    ['checks', 'POST /statuses/main', { state: 'success' }],
    ['hook', 'POST /hooks', { config: { url: 'URL/made', content_type: 'json' } }],
    ['hook', 'POST /hooks/HOOK/pings'],
    ['redeliver', 'POST /hooks/HOOK/deliveries/DELIVERY/attempts'],
  ])('gets what %s causes only after the answer: %s', async (operation, request, body) => {
    const { id } = await create('/hook', ['*'])
    await sandbox.idle()
    const [, delivery = ''] = /"id":(\d+)/.exec(await (await hooks(`GET /${id}/deliveries`)).text()) ?? []
    const path = request.replace('HOOK', String(id)).replace('DELIVERY', delivery).replace(' ', ` ${DEMO}`)
    const sent: unknown = body && JSON.parse(JSON.stringify(body).replace('URL', app.url))
    expect(await arrivalOf(operation, () => call(sandbox, path, headers, sent))).toBeGreaterThan(LATE - 5)
  })

  it('of an App gets its ping only after the answer to the code', async () => {
    const addresses = { url: app.url, redirect_url: app.url, hook_attributes: { url: app.url } }
    const manifest = JSON.stringify({ name: 'Late', ...addresses })
    const landing = await agree({ action: `${sandbox.url}/settings/apps/new`, manifest })
    const code = new URL(landing).searchParams.get('code')
    const convert = () => call(sandbox, `POST /app-manifests/${code}/conversions`, {})
    expect(await arrivalOf('convert', convert)).toBeGreaterThan(LATE - 5)
  })

  /** What arrives of a second event, when `change` is made before the first is answered. */
  const second = async (change: (hook: string) => Promise<unknown>) => {
    const { id } = await create('/old', ['issue_comment'])
    await sandbox.idle()
    const before = app.received.length
    let release = (): void => {}
    const released = new Promise<number>((resolve) => (release = () => resolve(200)))
    app.answers(() => released)
    for (const body of ['first', 'second'])
      await call(sandbox, `POST ${DEMO}/issues/1/comments`, headers, { body })
    await app.has(before + 1)
    await change(`/${id}`)
    release()
    await sandbox.idle()
    return app.received.slice(before + 1)
  }

  it('gets what the state was when the event happened, at the address and with the secret that it has by then', async () => {
    const [arrived] = await second(async (hook) => {
      await hooks(`PATCH ${hook}`, { config: { ...config('/new'), secret: 'new' } })
      await call(sandbox, `POST ${DEMO}/issues/1/reactions`, headers, { content: 'rocket' })
    })
    if (!arrived) throw new Error('nothing came')
    const signature = sign('new', arrived.body)
    expect([arrived.path, valuesOf(arrived, 'x-hub-signature-256')]).toEqual(['/new', [signature]])
    const issue = { reactions: { rocket: 0 } }
    expect(JSON.parse(arrived.body.toString())).toMatchObject({ comment: { body: 'second' }, issue })
  })

  it('gets nothing more once it is removed', async () => {
    expect(await second((hook) => hooks(`DELETE ${hook}`))).toEqual([])
  })

  it('gets the events it is subscribed to, in order, while it is active', async () => {
    await create('/all', ['*'])
    await create('/pulls', ['pull_request'])
    await hooks('POST ', { config: config('/inactive'), events: ['*'], active: false })
    await sandbox.idle()
    const before = app.received.length
    await comment('one')
    await call(sandbox, `PUT ${DEMO}/pulls/2/merge`, headers)
    await sandbox.idle()
    await comment('two')
    const sent = app.received.slice(before).map((each) => [each.path, ...valuesOf(each, 'x-github-event')])
    expect(sent.filter(([path]) => path !== '/pulls').map(([, event]) => event)).toEqual([
      'issue_comment',
      'pull_request',
      'push',
      'check_run',
      'check_suite',
      'issue_comment',
    ])
    expect(sent.filter(([path]) => path !== '/all')).toEqual([['/pulls', 'pull_request']])
  })

  it('loses a secret that a change of its settings does not repeat', async () => {
    const { id } = await create('/hook', ['push'])
    const changed = { content_type: 'json', insecure_ssl: '0', url: `${app.url}/new` }
    const { secret: _, ...rest } = config('/new')
    const both = [{ events: ['issues'], config: rest }, { active: true }]
    for (const change of both)
      expect(await json<HookAnswer>(hooks(`PATCH /${id}`, change))).toMatchObject({
        events: ['issues'],
        config: changed,
      })
    expect((await json<HookAnswer>(hooks(`GET /${id}`))).config).toEqual(changed)
  })

  it('is refused when one with its address has an event of it already', async () => {
    await create('/hook', ['push', 'issues'])
    const { id } = await create('/hook', ['issue_comment'])
    const exists = invalid({ code: 'custom', message: 'Hook already exists on this repository' })
    for (const events of [['issues'], ['*']])
      expect(await answerOf(hooks('POST ', { config: config('/hook'), events }))).toEqual(exists)
    expect(await answerOf(hooks(`PATCH /${id}`, { events: ['issue_comment', 'push'] }))).toEqual(exists)
  })

  it.each([
    ['no address', {}, { code: 'custom', message: 'Config must contain URL for webhooks' }],
    ['another scheme', { config: { url: 'ftp://127.0.0.1/' } }, { code: 'invalid', field: 'url' }],
    ['an unknown event', { events: ['pushed'] }, { code: 'invalid', field: 'events' }],
    ['another name', { name: 'email' }, { code: 'invalid', field: 'name' }],
    ['a flag that is none', { active: 'yes' }, { code: 'invalid', field: 'active' }],
  ])('is refused for %s', async (_, body, error) => {
    expect(await answerOf(hooks('POST ', body))).toEqual(invalid(error))
  })

  it('has a log with ids over 2^53, read along cursors though new deliveries arrive meanwhile', async () => {
    const { id } = await create('/hook', ['issue_comment'])
    for (const body of ['one', 'two', 'three', 'four']) await comment(body)
    // As text: JSON.parse rounds them.
    const idsIn = (text: string): string[] =>
      [...text.matchAll(/"id":(\d+),"guid"/g)].map(([, each = '']) => each)
    const all = idsIn(await (await hooks(`GET /${id}/deliveries`)).text())
    expect(BigInt(all[0] ?? 0) - BigInt(all[1] ?? 0)).toBe(1n)
    expect(Number(all[0])).toBe(Number(all[1]))
    const seen: string[] = []
    for (let query: string | undefined = '?per_page=2'; query !== undefined;) {
      const answer = await hooks(`GET /${id}/deliveries${query}`)
      const [, next] = /^<([^>]+cursor=v1_\d+)>; rel="next"$/.exec(answer.headers.get('link') ?? '') ?? []
      seen.push(...idsIn(await answer.text()))
      query = next && new URL(next).search
      await comment('meanwhile')
    }
    expect(seen).toEqual(all)
    expect(await answerOf(hooks(`GET /${id}/deliveries?cursor=second`))).toEqual(
      refusal(400, 'Invalid cursor'),
    )
  })
})

it('an id is no other id, and no number of an issue', async () => {
  await call(sandbox, `POST ${DEMO}/issues/1/comments`, headers, { body: 'x' })
  await call(sandbox, `POST ${DEMO}/issues/1/reactions`, headers, { content: 'eyes' })
  const { repos, issues, comments, reviewComments, reactions } = sandbox.state
  const pulls = issues.flatMap(({ pull }) => pull ?? [])
  const all = [...repos, ...issues, ...pulls, ...comments, ...reviewComments, ...reactions]
  const numbers = new Set(issues.map(({ number }) => number))
  expect(new Set([...all.map(({ id }) => id), ...numbers]).size).toBe(all.length + numbers.size)
})

it('a page refuses a foreign Host, and shows text of others as text', async () => {
  const port = Number(new URL(sandbox.url).port)
  for (const path of ['/', '/login/oauth/authorize', '/api/v3/user']) {
    const { status } = await exchange(port, requestText('GET', path, { Host: 'evil.example' }))
    expect([path, status]).toEqual([path, 403])
  }
  const body = `<script>alert(1)</script><img src=x onerror="alert(2)">`
  await call(sandbox, `POST ${DEMO}/issues/1/comments`, headers, { body })
  const shown = await (await fetch(`${sandbox.url}/octo/demo/issues/1`)).text()
  expect(shown).toContain('&lt;script&gt;alert(1)')
  expect(shown).not.toMatch(/<script|<img/)
})
