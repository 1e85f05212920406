import { beforeAll, describe, expect, it } from 'vitest'
import type { Env } from '../kit/folder.js'
import { addressOf, agree, beginSignIn, open, register } from '../kit/pages.js'
import { type Place, place } from '../kit/place.js'
import { closedPort } from '../kit/ports.js'
import type { Ran, RunContext } from '../kit/run.js'
import { tapRequests } from '../kit/tap.js'
import { shared } from './fixture.js'

const ID = /^Iv23li[0-9a-f]{14}$/

/** A place without a client and without a webhook secret. */
function newcomer(env: Env = {}): Promise<Place> {
  const none = { RELAY_CLIENT_ID: undefined, RELAY_CLIENT_SECRET: undefined, RELAY_WEBHOOK_SECRET: undefined }
  return place({ env: { ...none, ...env } })
}

/** Runs `relay setup --no-browser …`, calls `visit` with the address that it prints, and waits for its end. */
async function setup(
  here: Place,
  argv: readonly string[],
  visit: (address: string) => Promise<unknown>,
  over: Partial<RunContext> = {},
): Promise<Ran> {
  const running = here.startWith(over, 'setup', '--no-browser', ...argv)
  // It may end without one.
  const address = await addressOf(running).catch(() => undefined)
  if (address !== undefined) await visit(address)
  const { code, out, err } = await running.ended
  return { code: code ?? NaN, out, err }
}

/** The settings as `relay config --json` shows them. */
async function settingsOf(here: Place, env: Env = {}): Promise<Record<string, { value: unknown }>> {
  return JSON.parse((await here.runWith({ env }, 'config', '--json')).out).settings
}
const clientId = async (here: Place): Promise<string> => String((await settingsOf(here))['clientId']?.value)
const reveal = async (here: Place, name: string): Promise<string> =>
  (await here.run('config', '--reveal', name)).out
const profiles = async (here: Place): Promise<string> => (await here.run('profiles', '--json')).out
const requestsOf = ({ sandbox }: Place): string[] =>
  sandbox.requests.map(({ method, path }) => `${method} ${path}`)

describe('relay setup', () => {
  const here = shared(() => newcomer({ RELAY_PORT: '9123' }))
  let page = ''
  let manifest: unknown
  let ran: Ran
  beforeAll(async () => {
    ran = await setup(here, ['--json'], async (address) => {
      manifest = JSON.parse((await open(address)).manifest)
      page = await (await register(address)).text()
    })
  })

  it('registers an App in the browser, and stores its client', async () => {
    const result = JSON.parse(ran.out)
    const slug = expect.stringMatching(/^relay-[0-9a-f]{8}$/)
    expect([ran.code, result]).toEqual([
      0,
      {
        v: 1,
        provider: 'sandbox',
        providerUrl: here.sandbox.url,
        clientId: expect.stringMatching(ID),
        app: { id: 301, slug, installUrl: expect.any(String) },
        checks: expect.any(Array),
      },
    ])
    expect(result.checks).toContainEqual({
      check: 'code host',
      state: 'ok',
      text: expect.stringContaining(`client id ${result.clientId} (setup); ${here.sandbox.url} knows it`),
    })
    expect(page).toContain(`href="${result.app.installUrl}"`)
    expect(await clientId(here)).toBe(result.clientId)
  })

  it('asks for the least permissions, and for a webhook that is inactive', () => {
    expect(manifest).toEqual({
      name: expect.stringMatching(/^relay-/),
      url: 'http://127.0.0.1:9123',
      description: expect.any(String),
      redirect_url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/setup\/callback$/),
      callback_urls: ['http://127.0.0.1:9123/auth/sandbox/callback'],
      public: false,
      default_permissions: {
        issues: 'write',
        pull_requests: 'write',
        contents: 'write',
        repository_hooks: 'write',
        checks: 'read',
        statuses: 'read',
      },
      hook_attributes: { url: 'http://127.0.0.1:9123/webhook', active: false },
      default_events: expect.arrayContaining(['issue_comment', 'push', 'pull_request']),
    })
  })

  it('takes over the webhook secret of the App where the profile has none', async () => {
    expect(await reveal(here, 'webhookSecret')).toMatch(/^[0-9a-f]{40}\n$/)
  })

  it('gives serve its client and its code host', async () => {
    const env = { RELAY_PROVIDER: undefined, RELAY_PROVIDER_URL: undefined }
    const serving = await here.serveWith({ env })
    const begun = await beginSignIn(`${serving.address}/auth/sandbox?userId=ada`)
    const { origin, searchParams } = new URL(begun.authorize)
    expect([origin, searchParams.get('client_id')]).toEqual([here.sandbox.url, await clientId(here)])
    await serving.stop()
  })

  it('shows what it stored in config, with setup as the origin, below every other place', async () => {
    const nowhere = { RELAY_PROVIDER: undefined, RELAY_PROVIDER_URL: undefined }
    expect(await settingsOf(here, nowhere)).toMatchObject({
      provider: { value: 'sandbox', origin: 'setup' },
      providerUrl: { value: here.sandbox.url, origin: 'setup' },
      clientId: { value: expect.stringMatching(ID), origin: 'setup' },
      clientSecret: { set: true, origin: 'setup' },
    })
    expect(await settingsOf(here, { RELAY_CLIENT_ID: 'mine', RELAY_CLIENT_SECRET: 'own' })).toMatchObject({
      clientId: { value: 'mine', origin: 'RELAY_CLIENT_ID' },
      clientSecret: { set: true, origin: 'RELAY_CLIENT_SECRET' },
    })
    const elsewhere = { RELAY_PROVIDER: 'github', RELAY_PROVIDER_URL: undefined }
    const none = { clientId: { value: null }, clientSecret: { set: false } }
    expect(await settingsOf(here, elsewhere)).toMatchObject(none)
  })

  it('replaces a client only with a yes', async () => {
    const before = await clientId(here)
    const { code, err } = await setup(here, [], register)
    const replaces = `This profile has the client ${before} of ${here.sandbox.url}. To replace it without being asked, give --yes`
    expect([code, err]).toEqual([2, `error: ${replaces}\n`])
    expect(await clientId(here)).toBe(before)
    expect((await setup(here, ['--yes'], register)).code).toBe(0)
    expect(await clientId(here)).not.toBe(before)
  })

  it('removes what it stored with the profile', async () => {
    const id = await clientId(here)
    const { code, err } = await here.run('reset', '--yes')
    expect(code).toBe(0)
    expect(err).toContain(`  client      ${id}, which stays registered at ${here.sandbox.url}\n`)
    expect(await profiles(here)).toBe('')
  })
})

describe('relay setup of a newcomer', () => {
  it('has the App sign with the secret that the profile has already', async () => {
    await using here = await newcomer()
    await (await here.serve()).stop()
    const own = await reveal(here, 'webhookSecret')
    expect((await setup(here, [], register)).code).toBe(0)
    expect(await reveal(here, 'webhookSecret')).toBe(own)
    expect(requestsOf(here)).toContain('PATCH /api/v3/app/hook/config')
  })

  it('has the App sign with the secret of the environment, and shows it nowhere', async () => {
    await using here = await newcomer({ RELAY_WEBHOOK_SECRET: 'a secret of the environment' })
    const { code, out, err } = await setup(here, [], register)
    expect(code).toBe(0)
    expect(out + err).not.toContain('a secret of the environment')
    expect(requestsOf(here)).toContain('PATCH /api/v3/app/hook/config')
    const without = { env: { RELAY_WEBHOOK_SECRET: undefined } }
    expect((await here.runWith(without, 'config', '--reveal', 'webhookSecret')).out).toBe('')
  })

  it('ignores an answer of another browser, without the state, and after the first', async () => {
    await using here = await newcomer()
    const statuses: number[] = []
    const { code } = await setup(here, [], async (address) => {
      const visit = await open(address)
      const answer = await agree(visit, 'first')
      const { origin, searchParams } = new URL(answer)
      const given = async (query: string, cookie?: string): Promise<void> => {
        const headers: Record<string, string> = cookie === undefined ? {} : { cookie }
        statuses.push((await fetch(`${origin}/setup/callback?${query}`, { headers })).status)
      }
      const query = searchParams.toString()
      await given(query)
      await given(query, 'relay_setup=other')
      await given(`code=${searchParams.get('code')}`, visit.cookie)
      await given(`code=${searchParams.get('code')}&state=other`, visit.cookie)
      await given(`${query}&code=another`, visit.cookie)
      expect(await profiles(here)).toBe('')
      await Promise.all([given(query, visit.cookie), given(query, visit.cookie)])
    })
    expect(code).toBe(0)
    expect(statuses.slice(0, 5)).toEqual([400, 400, 400, 400, 400])
    expect(statuses.slice(5).toSorted((one, other) => one - other)).toEqual([200, 400])
  })

  it('works when it is left half way and begun again', async () => {
    await using here = await newcomer()
    const { code } = await setup(here, [], async (address) => {
      await agree(await open(address), 'left')
      expect((await register(address)).status).toBe(200)
    })
    expect(code).toBe(0)
    expect(await clientId(here)).toMatch(ID)
  })

  it('stores nothing and leaves no profile when it is interrupted', async () => {
    await using here = await newcomer()
    const stop = new AbortController()
    let own = ''
    const visit = async (address: string): Promise<void> => {
      own = address
      await agree(await open(address))
      stop.abort()
    }
    const { code, out } = await setup(here, [], visit, { signal: stop.signal })
    expect({ code, out, profiles: await profiles(here) }).toEqual({ code: 130, out: '', profiles: '' })
    await expect(fetch(own)).rejects.toThrow('fetch failed')
    // Begun again, it registers another App.
    expect((await setup(here, [], register)).code).toBe(0)
    expect(await clientId(here)).toMatch(ID)
  })

  it('stores nothing when the code host fails, and says so in both places', async () => {
    await using here = await newcomer()
    let page = ''
    const { code, err } = await setup(here, [], async (address) => {
      const visit = await open(address)
      const answer = new URL(await agree(visit))
      answer.searchParams.set('code', 'f'.repeat(40))
      page = await (await fetch(answer, { headers: { cookie: visit.cookie } })).text()
    })
    expect({ code, profiles: await profiles(here) }).toEqual({ code: 8, profiles: '' })
    expect(err).toContain('The sandbox refused: Not Found')
    expect(page).toContain('The sandbox refused: Not Found')
  })

  it.each([
    [
      'RELAY_CLIENT_ID and RELAY_CLIENT_SECRET',
      'both',
      { RELAY_CLIENT_ID: 'mine', RELAY_CLIENT_SECRET: 'own' },
    ],
    ['RELAY_CLIENT_ID', 'it', { RELAY_CLIENT_ID: 'mine' }],
  ])('is an error while there is %s, which would win', async (name, what, env) => {
    await using here = await newcomer(env)
    const { code, err } = await setup(here, [], register)
    const wins = `would win over what relay setup stores. Remove ${what}, then run relay setup again`
    expect({ code, err }).toEqual({ code: 2, err: `error: ${name} ${wins}\n` })
  })

  it('stores where the webhook of --app-hook leads, and asks for one that is active', async () => {
    const RELAY_PORT = String(await closedPort())
    await using here = await newcomer({ RELAY_PORT })
    const url = `http://127.0.0.1:${RELAY_PORT}/webhook`
    let manifest: unknown
    const { code } = await setup(here, ['--app-hook'], async (address) => {
      manifest = JSON.parse((await open(address)).manifest)
      await register(address)
    })
    expect(code).toBe(0)
    expect(manifest).toMatchObject({ hook_attributes: { url, active: true } })
    expect((await here.run('catch-up', '--dry-run')).err).toMatch(/^would ask for 0 of the App relay-/)
    expect((await setup(here, ['--yes'], register)).code).toBe(0)
    expect(await here.run('catch-up', '--dry-run')).toMatchObject({ code: 6, out: '' })
  })

  it('registers the App of an organization with --org', async () => {
    await using here = await newcomer({ RELAY_WEBHOOK_SECRET: 'a secret of the environment' })
    using tap = tapRequests(Number(new URL(here.sandbox.url).port))
    let action = ''
    const { code, out } = await setup(here, ['--org', 'acme', '--json'], async (address) => {
      ;({ action } = await open(address))
      await register(address)
    })
    expect(code).toBe(0)
    expect(new URL(action).pathname).toBe('/organizations/acme/settings/apps/new')
    // It has shown the code host to be the App, to give it the secret.
    const shown = tap.requests.find(({ url }) => url.endsWith('/app/hook/config'))
    const headers = { authorization: shown?.authorization ?? '' }
    expect(await (await fetch(`${here.sandbox.url}/api/v3/app`, { headers })).json()).toMatchObject({
      slug: JSON.parse(out).app.slug,
      owner: { login: 'acme', type: 'Organization' },
    })
  })
})
