import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Sandbox } from '../../src/sandbox/sandbox.js'
import { type ScriptedServer, scriptedServer } from '../helpers/scripted-server.js'
import { answerOf, call, json, refusal, signIn, start } from './sandbox-rig.js'

interface HookAnswer {
  readonly id: number
  readonly events: string[]
  readonly active: boolean
  readonly config: Record<string, string>
  readonly last_response: object
}

let sandbox: Sandbox
let receiver: ScriptedServer
let headers: { authorization: string }
let failing: number | undefined
let onDelivery = (): void => {}
beforeEach(async () => {
  failing = undefined
  onDelivery = () => {}
  receiver = await scriptedServer(() => (onDelivery(), { status: failing ?? 200, body: 'noted' }))
  sandbox = await start()
  headers = await signIn(sandbox, 'repo')
})
afterEach(async () => {
  await sandbox[Symbol.asyncDispose]()
  await receiver[Symbol.asyncDispose]()
})

const hooks = (request: string, body?: unknown): Promise<Response> => {
  const [method = '', path = ''] = request.split(' ')
  return call(sandbox, `${method} /repos/octo/demo/hooks${path}`, headers, body)
}
const config = (more: object = {}) => ({
  url: `${receiver.url}/hook`,
  content_type: 'json',
  secret: 'hush',
  ...more,
})
const create = (body: object = {}): Promise<HookAnswer> =>
  json<HookAnswer>(hooks('POST ', { config: config(), events: ['*'], ...body }))
const comment = (body: string, repo = 'octo/demo'): Promise<Response> =>
  call(sandbox, `POST /repos/${repo}/issues/1/comments`, headers, { body })
const invalid = (...errors: object[]): object =>
  refusal(
    422,
    'Validation Failed',
    errors.map((error) => ({ resource: 'Hook', ...error })),
  )

describe('a hook', () => {
  it('has GitHub’s defaults: the push event, as a form, unsigned', async () => {
    const made = await json<HookAnswer>(hooks('POST ', { config: { url: `${receiver.url}/hook` } }))
    expect([made.active, made.events, made.config]).toEqual([
      true,
      ['push'],
      { content_type: 'form', insecure_ssl: '0', url: `${receiver.url}/hook` },
    ])
    await sandbox.idle()
    const [ping] = receiver.received
    expect(ping?.headers['content-type']).toBe('application/x-www-form-urlencoded')
    expect(ping?.headers).not.toHaveProperty('x-hub-signature-256')
    expect(JSON.parse(new URLSearchParams(ping?.body).get('payload') ?? '')).toMatchObject({
      hook_id: made.id,
    })
  })

  it('shares its deliveries’ GUIDs with the other hooks', async () => {
    await create({ events: ['issue_comment'] })
    await create({ events: ['issue_comment'], config: config({ url: `${receiver.url}/second` }) })
    await sandbox.idle()
    const before = receiver.received.length
    await comment('one')
    await comment('two')
    await sandbox.idle()
    const sent = receiver.received.slice(before)
    expect(sent.map(({ path }) => path).toSorted()).toEqual(['/hook', '/hook', '/second', '/second'])
    const guids = (path: string): unknown[] =>
      sent.filter((each) => each.path === path).map((each) => each.headers['x-github-delivery'])
    expect(new Set(guids('/hook')).size).toBe(2)
    expect(guids('/hook')).toEqual(guids('/second'))
  })

  it('is changed, and loses a secret that the change does not repeat', async () => {
    const { id } = await create({ events: ['push'] })
    const changed = await json<HookAnswer>(
      hooks(`PATCH /${id}`, {
        active: false,
        events: ['issues'],
        config: { url: `${receiver.url}/new`, content_type: 'json' },
      }),
    )
    expect([changed.active, changed.events, changed.config]).toEqual([
      false,
      ['issues'],
      { content_type: 'json', insecure_ssl: '0', url: `${receiver.url}/new` },
    ])
    expect(await json(hooks(`PATCH /${id}`, { active: true }))).toMatchObject({
      active: true,
      events: ['issues'],
      config: { content_type: 'json', insecure_ssl: '0', url: `${receiver.url}/new` },
    })
  })
})

describe('a hook is refused', () => {
  it('when one with its address has an event of it already', async () => {
    await create({ events: ['push', 'issues'] })
    const { id } = await create({ events: ['issue_comment'] })
    const exists = invalid({ code: 'custom', message: 'Hook already exists on this repository' })
    const again = { config: config({ secret: 'other' }), events: ['issues'] }
    expect(await answerOf(await hooks('POST ', again))).toEqual(exists)
    expect(await answerOf(await hooks('POST ', { ...again, events: ['*'] }))).toEqual(exists)
    expect(await answerOf(await hooks(`PATCH /${id}`, { events: ['issue_comment', 'push'] }))).toEqual(exists)
    expect(await json<HookAnswer[]>(hooks('GET '))).toHaveLength(2)
  })

  it.each([
    ['no address', {}, { code: 'custom', message: 'Config must contain URL for webhooks' }],
    ['an address that is none', { config: { url: 'hook' } }, { code: 'invalid', field: 'url' }],
    ['another scheme', { config: { url: 'ftp://127.0.0.1/' } }, { code: 'invalid', field: 'url' }],
    ['an unknown event', { events: ['pushed'] }, { code: 'invalid', field: 'events' }],
    ['events that are no list', { events: 'push' }, { code: 'invalid', field: 'events' }],
    ['another name', { name: 'email' }, { code: 'invalid', field: 'name' }],
    ['a flag that is none', { active: 'yes' }, { code: 'invalid', field: 'active' }],
    [
      'another format',
      { config: { url: 'http://127.0.0.1/', content_type: 'xml' } },
      { code: 'invalid', field: 'content_type' },
    ],
  ])('for %s', async (_, body, error) => {
    expect(await answerOf(await hooks('POST ', body))).toEqual(invalid(error))
  })
})

describe('the last response of a hook', () => {
  it.each([
    [
      'the receiver refuses',
      503,
      { code: 503, status: 'misconfigured', message: 'Invalid HTTP Response: 503' },
    ],
    ['nothing listens', 0, { code: 502, status: 'connection_error', message: 'failed to connect to host' }],
  ])('says that %s', async (_, status, lastResponse) => {
    failing = status
    if (status === 0) await receiver[Symbol.asyncDispose]()
    const { id } = await create()
    await sandbox.idle()
    expect((await json<HookAnswer>(hooks(`GET /${id}`))).last_response).toEqual(lastResponse)
    if (status === 0) receiver = await scriptedServer(() => ({}))
  })
})
