import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { repository, type Repository } from '../kit/code-host.js'
import { addressOf, installApp, register } from '../kit/pages.js'
import { type Place, place, type Serving } from '../kit/place.js'
import { closedPort } from '../kit/ports.js'
import { fails } from '../kit/run.js'
import { tapRequests } from '../kit/tap.js'
import { checkOf, objects } from './example.js'
import { json } from './fixture.js'

let here: Place
let demo: Repository
/** Where the App's webhook leads at first. */
let before: string
let app: { readonly slug: string; readonly installUrl: string }
/** What the App shows the code host to be itself, which relay has just sent. */
let appToken: () => string
let tap: Disposable
let serving: Serving | undefined
const begin = async (): Promise<void> => {
  serving = undefined
  const RELAY_PORT = String(await closedPort())
  before = `http://127.0.0.1:${RELAY_PORT}/webhook`
  const env = { RELAY_PORT, RELAY_CLIENT_ID: undefined, RELAY_CLIENT_SECRET: undefined }
  here = await place({ env, signedIn: true })
  const tapped = tapRequests(Number(new URL(here.sandbox.url).port))
  tap = tapped
  appToken = () => tapped.requests.findLast(({ url }) => url.includes('/app/hook'))?.authorization ?? ''
  demo = await repository(here.sandbox)
  app = await registerApp('--app-hook')
}
const end = async (): Promise<void> => {
  tap[Symbol.dispose]()
  await here[Symbol.asyncDispose]()
}

/** Registers an App with `relay setup`, as a person does in the browser, and does not install it. */
async function registerApp(...flags: string[]): Promise<typeof app> {
  const setup = here.start('setup', '--no-browser', '--json', ...flags)
  await register(await addressOf(setup))
  const { code, out } = await setup.ended
  expect(code).toBe(0)
  return JSON.parse(out).app
}

async function install(): Promise<void> {
  await installApp(app.installUrl)
  await here.sandbox.idle()
}

/** Starts relay, and waits until the App's webhook leads to it. */
async function serve(): Promise<Serving> {
  const relay = await here.serve()
  serving = relay
  await relay.object({ type: 'hook', app: app.slug, state: 'leads here' })
  return relay
}

/** Changes the App's webhook, as its owner does in its settings at the code host. */
async function change(config: { url?: string; secret?: string; content_type?: string }): Promise<void> {
  const { ok } = await fetch(`${here.sandbox.url}/api/v3/app/hook/config`, {
    method: 'PATCH',
    headers: { authorization: appToken() },
    body: JSON.stringify(config),
  })
  expect(ok).toBe(true)
}

const refusal = (status: 401 | 404 | 429, message: string, headers: Record<string, string> = {}) =>
  ({ kind: 'answer', status, headers, body: JSON.stringify({ message }) }) as const
const DELETED = refusal(404, 'Integration not found')

/** What `relay doctor` finds about the App's webhook. */
const check = async () => {
  const { check: _, ...found } = (await checkOf(here, 'hook')) ?? {}
  return found
}
const ok = (text: string) => ({ state: 'ok', text })
const fail = (text: string, fix: string) => ({ state: 'fail', text, fix })

describe('relay catch-up without a repository', () => {
  beforeEach(begin)
  afterEach(end)

  it("reads the App's log", async () => {
    await install()
    await demo.comment('one', 'two')
    const dry = await here.run('catch-up', '--dry-run', '--json')
    expect(objects(dry)).toMatchObject([
      { type: 'missing', app: app.slug, event: 'installation', action: 'created' },
      { type: 'missing', app: app.slug, event: 'issue_comment', action: 'created' },
      { type: 'missing', app: app.slug, event: 'issue_comment', action: 'created' },
    ])
    expect(dry.err).toContain(`would ask for 3 of the App ${app.slug}\n`)
    await serve()
    const out = `caught up with the App ${app.slug}: 3 missing, 3 arrived\n`
    expect(await here.run('catch-up')).toEqual({ code: 0, out, err: `the App ${app.slug}: 3 missing\n` })
    const none = { v: 1, type: 'caught-up', app: app.slug, missing: 0, arrived: 0, failed: [] }
    expect(await json(here.run('catch-up', '--json'))).toEqual(none)
    const through = `The deliveries of octo/demo come through the App ${app.slug}. relay catch-up without a repository reads its log`
    expect(await here.run('catch-up', 'octo/demo')).toEqual(fails(6, through))
  })
})

describe("the check of the App's webhook", () => {
  beforeEach(begin)
  afterEach(end)

  it('finds an App that is not installed yet, one that has sent nothing, and one that was answered', async () => {
    await serve()
    const text = `${app.slug} is installed on no repository yet: open ${app.installUrl} in a browser`
    expect(await check()).toEqual({ state: 'skip', text })
    await install()
    here.sandbox.faults.next('deliveries', { kind: 'answer', status: 200, body: '[]' })
    expect(await check()).toEqual(ok(`the webhook of ${app.slug} fits`))
    await demo.comment('hello')
    const answered = `the webhook of ${app.slug} fits, and its last delivery was answered`
    expect(await check()).toEqual(ok(answered))
  })

  it('finds one that failed last, and one that signs with another secret', async () => {
    await install()
    const last = `the last delivery of ${app.slug} failed: 502 failed to connect to host`
    expect(await check()).toEqual(fail(last, 'start relay serve --catch-up, which gets what was missed'))
    await serve()
    await change({ secret: 'another' })
    await demo.comment('refused')
    const signed = `the webhook of ${app.slug} signed its last delivery with another secret: it was answered 401`
    expect(await check()).toEqual(
      fail(signed, 'restart relay serve, which gives it the secret of this profile'),
    )
  })
})

describe('a repository that had a hook before the App was installed there', () => {
  beforeAll(async () => {
    await begin()
    await serve()
    expect((await here.run('hook', 'add', 'octo/demo')).code).toBe(0)
    await install()
  })
  afterAll(end)

  it('the check has nothing against a hook where the App is installed too: its deliveries are duplicates', async () => {
    expect(await check()).toMatchObject({ state: 'ok' })
  })
})

describe('while the App is installed nowhere', () => {
  beforeAll(begin)
  afterEach(async () => {
    here.sandbox.faults.clear()
    if (!serving) return
    // An address that relay did not give, it does not change.
    await change({ url: `${serving.address}/webhook` })
    await serving.stop()
    serving = undefined
  })
  afterAll(end)

  it('relay catch-up reads the hooks that the profile made as well', async () => {
    await serve()
    expect((await here.run('hook', 'add', 'octo/demo')).code).toBe(0)
    expect((await here.run('catch-up')).out).toBe(
      `caught up with the App ${app.slug}: nothing was missing\ncaught up with octo/demo: nothing was missing\n`,
    )
    expect((await here.run('hook', 'remove', 'octo/demo')).code).toBe(0)
  })

  it('relay catch-up ends with 6 when the webhook leads elsewhere, and says what changes that', async () => {
    const { address } = await serve()
    await change({ url: before })
    const elsewhere = `The webhook of the App ${app.slug} leads to ${before}, and this relay receives at ${address}/webhook. relay serve changes the webhook when it starts`
    expect(await here.run('catch-up')).toEqual(fails(6, elsewhere))
  })

  it('relay serve leaves an address alone that somebody entered at the code host, and says what changes that', async () => {
    const relay = await serve()
    const entered = 'https://ci.example.com/hook'
    await change({ url: entered })
    await relay.stop()
    serving = await here.serve()
    const failed = { v: 1, type: 'hook', app: app.slug, state: 'failed', retries: false }
    expect(await serving.object({ type: 'hook', app: app.slug })).toEqual({
      ...failed,
      error: `The webhook of the App ${app.slug} leads to ${entered}, which somebody entered there. To have it here, enter ${serving.address}/webhook in the settings of the App`,
    })
    await serving.stop()
    // The last one that relay gave.
    serving = relay
  })

  it.each([
    ['was deleted', DELETED, /has no App \S+ any more: .* Register another with relay setup$/m],
    [
      'lost its key',
      refusal(401, 'A JSON web token could not be decoded'),
      /refused the key of the App \S+: .* register another with relay setup$/m,
    ],
  ] as const)('relay catch-up ends with 8 when the App %s', async (_, fault, text) => {
    here.sandbox.faults.always('hook', fault)
    const ran = await here.run('catch-up', '--dry-run')
    expect(ran).toEqual({ code: 8, out: '', err: expect.stringMatching(text) })
    const relay = await here.serve('--catch-up')
    const failed = { state: 'failed', retries: false }
    expect(await relay.object({ type: 'hook', app: app.slug })).toMatchObject(failed)
    await relay.stop()
  })

  it('the check finds a webhook that leads elsewhere', async () => {
    const { address } = await serve()
    await change({ url: before })
    const elsewhere = `the webhook of ${app.slug} leads to ${before}, not to ${address}/webhook`
    expect(await check()).toEqual(fail(elsewhere, 'restart relay serve, which corrects it'))
  })

  it('the check finds one without a secret, and one that sends forms', async () => {
    await check()
    await change({ content_type: 'form' })
    expect(await check()).toMatchObject({ text: `the webhook of ${app.slug} sends form, not JSON` })
    await change({ content_type: 'json', secret: '' })
    const none = `the webhook of ${app.slug} has no secret, so that relay refuses its deliveries`
    expect(await check()).toEqual(fail(none, 'run relay serve, which corrects it'))
  })

  it('the check finds an App that was deleted, and does not judge one that it cannot ask', async () => {
    here.sandbox.faults.always('hook', '502')
    expect(await check()).toMatchObject({
      state: 'skip',
      text: expect.stringContaining(`that of ${app.slug} cannot be seen (The sandbox failed (502)`),
    })
    here.sandbox.faults.always('hook', DELETED)
    const gone = expect.stringContaining(`has no App ${app.slug} any more`)
    expect(await check()).toEqual(fail(gone, 'relay setup --app-hook'))
  })

  it('the check is made only where the profile has such an App', async () => {
    await registerApp('--yes')
    expect(await check()).not.toMatchObject({ text: expect.stringContaining('webhook of') })
  })
})
