import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Sandbox } from '../../src/sandbox/sandbox.js'
import { grantAt } from '../../src/testing/sandbox.js'
import {
  answerOf,
  call,
  convert,
  json,
  makeApp,
  manifest,
  NOW,
  post,
  REDIRECT,
  refusal,
  register,
  start,
  tokenIn,
} from './sandbox-rig.js'

const HOUR = 3_600_000

let now: number
let sandbox: Sandbox
beforeEach(async () => {
  now = NOW
  sandbox = await start({ clock: () => now })
})
afterEach(() => sandbox[Symbol.asyncDispose]())

describe('the manifest flow', () => {
  it('registers an App with its name from the page, and shows its secrets once', async () => {
    const redirect = await register(sandbox, manifest(), 'Renamed & mine')
    expect(redirect.origin + redirect.pathname).toBe(REDIRECT)
    expect([...redirect.searchParams]).toEqual([
      ['code', expect.stringMatching(/^[0-9a-f]{40}$/)],
      ['state', 'st&te'],
    ])
    const answer = await convert(sandbox, redirect)
    expect(await answerOf(answer)).toEqual({
      status: 201,
      body: {
        id: 301,
        slug: 'renamed-mine',
        client_id: expect.stringMatching(/^Iv23li[0-9a-f]{14}$/),
        node_id: expect.any(String),
        owner: expect.objectContaining({ login: 'octo' }),
        name: 'Renamed & mine',
        description: '',
        external_url: 'https://example.com/',
        html_url: `${sandbox.url}/apps/renamed-mine`,
        created_at: '2026-05-04T03:02:01Z',
        updated_at: '2026-05-04T03:02:01Z',
        permissions: { issues: 'write', repository_hooks: 'write' },
        events: ['issue_comment'],
        installations_count: 0,
        client_secret: expect.stringMatching(/^[0-9a-f]{40}$/),
        webhook_secret: null,
        pem: expect.stringMatching(/^-----BEGIN RSA PRIVATE KEY-----\n/),
      },
    })
    expect(await answerOf(await convert(sandbox, redirect))).toEqual(refusal(404, 'Not Found'))
    expect(JSON.stringify(sandbox.state.requests)).not.toContain(redirect.searchParams.get('code'))
  })

  it('ends after an hour: the page, and the code', async () => {
    const token = await tokenIn(post(sandbox, '/settings/apps/new', { manifest: manifest() }))
    const redirect = await register(sandbox, manifest())
    now += HOUR
    expect((await post(sandbox, '/settings/apps', { authenticity_token: token, name: 'x' })).status).toBe(422)
    expect((await convert(sandbox, redirect)).status).toBe(404)
    const late = await register(sandbox, manifest())
    now += HOUR - 1
    expect((await convert(sandbox, late)).status).toBe(201)
  })

  it('registers an App of an organization', async () => {
    const redirect = await register(sandbox, manifest(), 'My relay', '/organizations/acme')
    expect(await json(convert(sandbox, redirect))).toMatchObject({
      slug: 'my-relay',
      owner: { login: 'acme', type: 'Organization' },
    })
    for (const name of ['a--b', '-a', 'a'.repeat(40)])
      expect((await post(sandbox, `/organizations/${name}/settings/apps/new`, {})).status).toBe(404)
  })

  it('needs the form of the page, once', async () => {
    const token = await tokenIn(post(sandbox, '/settings/apps/new', { manifest: manifest() }))
    const send = async (fields: Record<string, string>): Promise<number> =>
      (await post(sandbox, '/settings/apps', { name: 'My relay', ...fields })).status
    expect(await send({})).toBe(422)
    expect(await send({ authenticity_token: token })).toBe(302)
    expect(await send({ authenticity_token: token })).toBe(422)
  })

  it('asks for another name when it is taken, and then continues', async () => {
    await makeApp(sandbox)
    const first = await tokenIn(post(sandbox, '/settings/apps/new', { manifest: manifest() }))
    const again = await post(sandbox, '/settings/apps', { authenticity_token: first, name: 'my RELAY' })
    expect(again.status).toBe(422)
    const page = await again.text()
    expect(page).toContain('Name is already taken.')
    const second = await tokenIn(new Response(page))
    const answer = await post(sandbox, '/settings/apps', { authenticity_token: second, name: 'Other' })
    expect(answer.status).toBe(302)
  })

  it('registers one App when two flows with the same name are agreed to', async () => {
    const [one, other] = [await register(sandbox, manifest()), await register(sandbox, manifest())]
    const answers = await Promise.all([convert(sandbox, one), convert(sandbox, other)])
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([201, 404]))
  })

  it.each([
    ['no JSON', '{'],
    ['no object', '[]'],
    ['no homepage', manifest({ url: undefined })],
    ['a long name', manifest({ name: 'x'.repeat(35) })],
    ['a redirect to another machine', manifest({ redirect_url: 'https://example.com/' })],
    ['an unknown event', manifest({ default_events: ['pushed'] })],
    ['an unknown access', manifest({ default_permissions: { issues: 'all' } })],
    ['a hook without an address', manifest({ hook_attributes: { active: true } })],
    ['eleven callbacks', manifest({ callback_urls: Array.from({ length: 11 }, () => REDIRECT) })],
  ])('refuses a manifest with %s', async (_, text) => {
    const answer = await post(sandbox, '/settings/apps/new', { manifest: text })
    expect([answer.status, await answer.text()]).toEqual([
      422,
      expect.stringContaining('No App was registered'),
    ])
  })
})

describe('a user of an App', () => {
  it('has no scopes, and may do everything', async () => {
    const app = await makeApp(sandbox)
    const { access_token: token } = await grantAt(sandbox.url, {
      id: app.client_id,
      secret: app.client_secret,
    })
    expect(token).toMatch(/^ghu_/)
    const headers = { authorization: `Bearer ${token}` }
    const user = await call(sandbox, 'GET /user', headers)
    expect([user.headers.get('x-oauth-scopes'), await json(user)]).toEqual([
      null,
      expect.objectContaining({ login: 'octo' }),
    ])
    expect((await call(sandbox, 'PUT /repos/octo/demo/pulls/2/merge', headers)).status).toBe(200)
  })

  it('is not let in by the secret of another', async () => {
    const app = await makeApp(sandbox)
    await expect(grantAt(sandbox.url, { id: app.client_id, secret: 'other' })).rejects.toMatchObject({
      kind: 'unauthenticated',
    })
    const body = new URLSearchParams({ client_id: app.client_id })
    const device = await fetch(`${sandbox.url}/login/device/code`, { method: 'POST', body })
    expect([device.status, await device.text()]).toEqual([
      400,
      expect.stringContaining('error=device_flow_disabled'),
    ])
  })
})
