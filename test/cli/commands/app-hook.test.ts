import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { checkApp, openApp } from '../../../src/cli/commands/doctor/app.js'
import { createCheckContext } from '../../../src/cli/commands/doctor/context.js'
import type { CheckResult } from '../../../src/cli/commands/doctor/result.js'
import { attach } from '../../../src/cli/session/attach.js'
import { Secret } from '../../../src/base/secret.js'
import { sendOnce } from '../../../src/net/send-once.js'
import { appToken } from '../../../src/providers/github/app-token.js'
import { createProvider } from '../../../src/providers/open.js'
import type { Provider } from '../../../src/providers/provider.js'
import type { AppIdentity, RegisteredApp } from '../../../src/providers/registration.js'
import type { Serving } from '../../../src/serve/serve.js'
import { startSandbox } from '../../../src/testing/index.js'
import { installApp, makeApp, storeApp } from '../../helpers/app.js'
import { testContext } from '../../helpers/context.js'
import { type Alone, profileStore, serveFor, startAlone } from '../rig.js'

const REPO = { owner: 'octo', repo: 'demo' }
const BEFORE = 'http://127.0.0.1:9/before'

let alone: Alone
let provider: Provider
let made: RegisteredApp
let serving: Serving | undefined
beforeEach(async () => {
  alone = await startAlone()
  serving = undefined
  provider = createProvider({ name: 'sandbox', url: alone.sandbox.url })
  made = await makeApp(alone.sandbox.url, { url: BEFORE, active: true })
  await store({})
})
afterEach(async () => {
  await serving?.[Symbol.asyncDispose]()
  await alone[Symbol.asyncDispose]()
})

/** Stores the App, with changes. */
async function store(over: Partial<AppIdentity>): Promise<void> {
  await using profile = await profileStore(alone.shell)
  await profile.delete('setup:secret')
  await storeApp(profile, alone.sandbox.url, { ...made, app: { ...made.app, ...over } }, BEFORE)
}

/** Starts relay, and waits until the App's webhook leads to it. */
async function serve(): Promise<Serving> {
  const { context } = testContext({ env: { ...alone.shell.env, RELAY_PORT: '0' } })
  let onLeads = (): void => {}
  const leads = new Promise<void>((resolve) => (onLeads = resolve))
  serving = await serveFor(context, { onHook: () => onLeads() })
  await leads
  return serving
}

async function comment(...texts: string[]): Promise<void> {
  for (const body of texts) {
    await provider.comment(alone.grant.access_token, { ...REPO, issueNumber: 1, body })
    await alone.sandbox.idle()
  }
}

const run = (...argv: string[]) => alone.shell.run(argv)
const objects = ({ out }: { out: string }): unknown[] =>
  out.split('\n').flatMap((line): unknown => (line === '' ? [] : JSON.parse(line)))

describe('relay catch-up without a repository', () => {
  it("reads the App's log", async () => {
    await installApp(made.installUrl)
    await alone.sandbox.idle()
    await comment('one', 'two')
    const dry = await run('catch-up', '--dry-run', '--json')
    expect(objects(dry)).toMatchObject([
      { type: 'missing', app: 'relay-test', event: 'installation', action: 'created' },
      { type: 'missing', app: 'relay-test', event: 'issue_comment', action: 'created' },
      { type: 'missing', app: 'relay-test', event: 'issue_comment', action: 'created' },
    ])
    expect(dry.err).toContain('would ask for 3 of the App relay-test\n')
    await serve()
    expect(await run('catch-up')).toEqual({
      code: 0,
      out: 'caught up with the App relay-test: 3 missing, 3 arrived\n',
      err: 'the App relay-test: 3 missing\n',
    })
    expect(objects(await run('catch-up', '--json'))).toEqual([
      { v: 1, type: 'caught-up', app: 'relay-test', missing: 0, arrived: 0, failed: [] },
    ])
    expect(await run('catch-up', 'octo/demo')).toEqual({
      code: 6,
      out: '',
      err: 'error: The deliveries of octo/demo come through the App relay-test. relay catch-up without a repository reads its log\n',
    })
  })

  it('reads the hooks that the profile made as well', async () => {
    await serve()
    expect((await run('hook', 'add', 'octo/demo')).code).toBe(0)
    expect((await run('catch-up')).out).toBe(
      'caught up with the App relay-test: nothing was missing\ncaught up with octo/demo: nothing was missing\n',
    )
  })

  it('ends with 6 when the webhook leads elsewhere, and says what changes that', async () => {
    const { url } = await serve()
    const { current: secret } = serving?.settings.webhookSecrets ?? { current: new Secret('') }
    await provider.registration.apps?.hook.change(made.app, { url: BEFORE, secret })
    expect(await run('catch-up')).toEqual({
      code: 6,
      out: '',
      err: `error: The webhook of the App relay-test leads to ${BEFORE}, and this relay receives at ${url}/webhook. relay serve changes the webhook when it starts\n`,
    })
  })

  it('waits when the code host fails, and says when to try again after a long limit', async () => {
    await serve()
    alone.sandbox.faults.always('deliveries', {
      kind: 'answer',
      status: 429,
      headers: { 'Retry-After': '7200' },
      body: JSON.stringify({ message: 'too many' }),
    })
    expect(await run('catch-up')).toMatchObject({
      code: 8,
      err: 'error: The sandbox refused: too many. Try again in 7200 s\n',
    })
    alone.sandbox.faults.clear()
    alone.sandbox.faults.next('hook', '502')
    expect(await run('catch-up')).toMatchObject({
      code: 0,
      err: expect.stringMatching(/^Continues in \d+ s: The sandbox failed \(502\)\n$/),
    })
  })

  it.each([
    ['was deleted', { id: 999 }, /has no App relay-test any more: .* Register another with relay setup$/m],
    ['lost its key', 'key', /refused the key of the App relay-test: .* register another with relay setup$/m],
  ] as const)('ends with 8 when the App %s', async (_, change, text) => {
    await using elsewhere = await startSandbox()
    const { privateKey } = (await makeApp(elsewhere.url)).app
    await store(change === 'key' ? { privateKey } : change)
    expect(await run('catch-up', '--dry-run')).toMatchObject({
      code: 8,
      out: '',
      err: expect.stringMatching(text),
    })
  })
})

describe('relay hook add', () => {
  it('refuses a repository whose deliveries come through the App, also before the first of them', async () => {
    await serve()
    await installApp(made.installUrl)
    expect(await run('hook', 'add', 'octo/demo')).toEqual({
      code: 8,
      out: '',
      err: 'error: The App relay-test is installed on octo/demo and sends its deliveries here, so a hook would send each twice. Use no hook there\n',
    })
    expect(await provider.hooks.list(alone.grant.access_token, REPO)).toEqual([])
  })

  it('names the command that removes a hook that was there before', async () => {
    await serve()
    expect((await run('hook', 'add', 'octo/demo')).code).toBe(0)
    await installApp(made.installUrl)
    expect((await run('hook', 'add', 'octo/demo')).err).toContain(
      'Remove its hook with relay hook remove octo/demo\n',
    )
    expect((await run('hook', 'remove', 'octo/demo')).code).toBe(0)
  })
})

describe("the check of the App's webhook", () => {
  async function check(): Promise<CheckResult | undefined> {
    const { context } = testContext({ env: alone.shell.env })
    const attached = await attach(context, {}, { tolerant: true })
    await using profile = await profileStore(alone.shell)
    const checked = createCheckContext(attached, profile)
    const options = { sendOnce, timeLimit: 5000, signal: context.signal }
    const app = await openApp(checked, options)
    return app && (await checkApp(checked, app, options))
  }

  it('is made only where the profile has such an App', async () => {
    await using profile = await profileStore(alone.shell)
    await profile.delete('setup:secret')
    await storeApp(profile, alone.sandbox.url, made, undefined)
    expect(await check()).toBeUndefined()
    const { out } = await run('doctor', '--json')
    expect(JSON.parse(out).checks.map(({ check: name }: { check: string }) => name)).not.toContain('App')
  })

  it('finds an App that is not installed yet, one that has sent nothing, and one that was answered', async () => {
    await serve()
    expect(await check()).toEqual({
      state: 'skip',
      text: `relay-test is installed on no repository yet: open ${made.installUrl} in a browser`,
    })
    await installApp(made.installUrl)
    await alone.sandbox.idle()
    await comment('hello')
    const fits = { state: 'ok', text: 'the webhook of relay-test fits, and its last delivery was answered' }
    expect(await check()).toEqual(fits)
    const { out } = await run('doctor', '--json')
    expect(JSON.parse(out).checks).toContainEqual({ check: 'App', ...fits })
  })

  it('finds a hook where the App is installed too', async () => {
    await serve()
    await run('hook', 'add', 'octo/demo')
    await installApp(made.installUrl)
    expect(await check()).toEqual({
      state: 'fail',
      text: 'octo/demo has a hook, and relay-test is installed there: each delivery comes twice',
      fix: 'relay hook remove octo/demo',
    })
  })

  it('finds a webhook that leads elsewhere', async () => {
    const { url } = await serve()
    const { current: secret } = serving?.settings.webhookSecrets ?? { current: new Secret('') }
    await provider.registration.apps?.hook.change(made.app, { url: BEFORE, secret })
    expect(await check()).toEqual({
      state: 'fail',
      text: `the webhook of relay-test leads to ${BEFORE}, not to ${url}/webhook`,
      fix: 'restart relay serve, which corrects it',
    })
  })

  it('finds one that failed last, and one that signs with another secret', async () => {
    await installApp(made.installUrl)
    await alone.sandbox.idle()
    expect(await check()).toEqual({
      state: 'fail',
      text: 'the last delivery of relay-test failed: 502 failed to connect to host',
      fix: 'start relay serve --catch-up, which gets what was missed',
    })
    const { url } = await serve()
    const secret = new Secret('another')
    await provider.registration.apps?.hook.change(made.app, { url: `${url}/webhook`, secret })
    await comment('refused')
    expect(await check()).toEqual({
      state: 'fail',
      text: 'the webhook of relay-test signed its last delivery with another secret: it was answered 401',
      fix: 'restart relay serve, which gives it the secret of this profile',
    })
  })

  it('finds one without a secret, and one that sends forms', async () => {
    const patch = async (config: object): Promise<void> => {
      await fetch(`${alone.sandbox.url}/api/v3/app/hook/config`, {
        method: 'PATCH',
        headers: { authorization: `Bearer ${appToken(made.app, Date.now())}` },
        body: JSON.stringify(config),
      })
    }
    await patch({ content_type: 'form' })
    expect(await check()).toMatchObject({ text: 'the webhook of relay-test sends form, not JSON' })
    await patch({ content_type: 'json', secret: '' })
    expect(await check()).toEqual({
      state: 'fail',
      text: 'the webhook of relay-test has no secret, so that relay refuses its deliveries',
      fix: 'run relay serve, which corrects it',
    })
  })

  it('finds an App that was deleted, and does not judge one that it cannot ask', async () => {
    alone.sandbox.faults.next('hook', '502')
    expect(await check()).toMatchObject({
      state: 'skip',
      text: expect.stringMatching(/^that of relay-test cannot be seen \(The sandbox failed \(502\)/),
    })
    await store({ id: 999 })
    expect(await check()).toEqual({
      state: 'fail',
      text: expect.stringContaining('has no App relay-test any more'),
      fix: 'relay setup --app-hook',
    })
  })
})
