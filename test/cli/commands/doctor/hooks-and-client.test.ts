import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { checkHooks } from '../../../../src/cli/commands/doctor/hooks.js'
import { checkClient } from '../../../../src/cli/commands/doctor/oauth-client.js'
import { createCheckContext } from '../../../../src/cli/commands/doctor/context.js'
import type { Flags } from '../../../../src/cli/settings/read.js'
import { attach } from '../../../../src/cli/session/attach.js'
import { publish } from '../../../../src/cli/session/publish.js'
import { completeSettings, profileFolder } from '../../../../src/cli/settings/complete.js'
import { prepare } from '../../../../src/cli/settings/prepare.js'
import { Secret } from '../../../../src/base/secret.js'
import { openHost } from '../../../../src/codehost/hosts.js'
import { serve } from '../../../../src/serve/serve.js'
import { Journal } from '../../../../src/journal/journal.js'
import { sendOnce } from '../../../../src/net/client.js'
import { openDatabase } from '../../../../src/store/open.js'
import { testContext } from '../../../helpers/context.js'
import { NOWHERE } from '../../../helpers/journal.js'
import { delivery } from '../../../journal/rig.js'
import { type Alone, serveFor, startAlone } from '../../rig.js'

const RELAY = 'http://127.0.0.1:9871'

let alone: Alone
beforeEach(async () => {
  alone = await startAlone()
})
afterEach(() => alone[Symbol.asyncDispose]())

/** Runs a check as doctor does. */
async function check(name: 'hooks' | 'client', env: Record<string, string> = {}, flags: Flags = {}) {
  const { context } = testContext({ env: { ...alone.shell.env, RELAY_PUBLIC_URL: RELAY, ...env } })
  const attached = await attach(context, flags, { tolerant: true })
  const folder = profileFolder(attached.options)
  await using database = await openDatabase({ kind: 'file', folder })
  const checked = createCheckContext(attached, database)
  const options = { sendOnce, timeLimit: 5000, signal: context.signal }
  return name === 'hooks' ? await checkHooks(checked, database, options) : await checkClient(checked, options)
}

async function receiveOne(): Promise<void> {
  const { context } = testContext({ env: alone.shell.env })
  const { options } = await attach(context, {}, { tolerant: true })
  await using database = await openDatabase({ kind: 'file', folder: profileFolder(options) })
  const journal = new Journal(database.sql)
  await journal.append(delivery('one', { repo: 'octo/demo' }), NOWHERE)
  await journal.flush()
}

async function addHook(config: Record<string, string>, rest: object = {}): Promise<void> {
  const answer = await fetch(`${alone.sandbox.url}/api/v3/repos/octo/demo/hooks`, {
    method: 'POST',
    headers: { authorization: `Bearer ${alone.grant.access_token}` },
    body: JSON.stringify({
      config: { url: `${RELAY}/webhook`, ...config },
      active: true,
      events: ['push'],
      ...rest,
    }),
  })
  expect(answer.status).toBe(201)
  await alone.sandbox.idle()
}

const ADD = 'relay hook add octo/demo'
/** Only another delivery shows whether that was enough. */
const ADD_AND_TEST = `${ADD}, then relay hook test octo/demo`

describe('the check of hooks', () => {
  it('needs a sign-in, and a repository in the journal', async () => {
    expect(await check('hooks', { RELAY_USER: 'grace' })).toEqual({
      state: 'skip',
      text: 'asking about them needs a sign-in',
    })
    expect(await check('hooks')).toEqual({
      state: 'skip',
      text: 'none was made, and the journal has no delivery of a repository',
    })
  })

  it('finds none that sends here', async () => {
    await receiveOne()
    expect(await check('hooks')).toEqual({
      state: 'skip',
      text: `none of octo/demo sends to ${RELAY}/webhook`,
    })
  })

  it.each([
    [{ content_type: 'json', secret: 's' }, { active: false }, 'is inactive', ADD],
    [{ content_type: 'json', secret: 's' }, {}, 'failed last: 502 failed to connect to host', ADD_AND_TEST],
  ])('finds what is wrong with %j %j', async (config, rest, why, fix) => {
    await receiveOne()
    await addHook(config, rest)
    expect(await check('hooks')).toEqual({ state: 'fail', text: `that of octo/demo ${why}`, fix })
  })
})

describe('the check of the hooks that this profile made, or has in --hook', () => {
  const add = (...argv: string[]) => alone.shell.run(['hook', 'add', 'octo/demo', ...argv])
  const hooks = () => openHost({ name: 'sandbox', url: alone.sandbox.url }).as(alone.grant.access_token).hooks
  const REPO = { owner: 'octo', repo: 'demo' }

  it('finds them without a delivery in the journal', async () => {
    await using serving = await serveFor(
      testContext({ env: { ...alone.shell.env, RELAY_PORT: '0' } }).context,
    )
    await add()
    await alone.sandbox.idle()
    const env = { RELAY_PUBLIC_URL: serving.url }
    expect(await check('hooks', env)).toEqual({
      state: 'ok',
      text: 'that of octo/demo fits, and its last delivery was answered',
    })
    const [hook] = await hooks().list(REPO)
    const settings = { url: hook?.url ?? '', secret: new Secret('other'), events: ['push', 'issues'] }
    await hooks().change(REPO, hook?.id ?? 0, settings, { sameSecret: false })
    expect(await check('hooks', env)).toEqual({
      state: 'fail',
      text: 'that of octo/demo sends push, issues alone, and not every event',
      fix: ADD,
    })
    await add()
    const everything = { ...settings, events: undefined }
    await hooks().change(REPO, hook?.id ?? 0, everything, { sameSecret: false })
    await hooks().test(REPO, hook?.id ?? 0)
    await alone.sandbox.idle()
    expect(await check('hooks', env)).toEqual({
      state: 'fail',
      text: 'that of octo/demo signs with another secret than this profile: its last delivery was answered 401',
      fix: ADD_AND_TEST,
    })
    await add()
    expect(await alone.shell.run(['hook', 'test', 'octo/demo'])).toMatchObject({ code: 0 })
    expect(await check('hooks', env)).toMatchObject({ state: 'ok' })
    await hooks().remove(REPO, hook?.id ?? 0)
    expect(await check('hooks', env)).toEqual({
      state: 'fail',
      text: `none of octo/demo sends to ${serving.url}/webhook`,
      fix: ADD,
    })
  })

  it('finds one that leads to an address of before', async () => {
    const context = () => testContext({ env: { ...alone.shell.env, RELAY_PORT: '0' } }).context
    const first = await serveFor(context())
    await add()
    await first[Symbol.asyncDispose]()
    await using second = await serveFor(context())
    expect(await check('hooks', { RELAY_PUBLIC_URL: second.url })).toEqual({
      state: 'fail',
      text: `that of octo/demo sends to ${first.url}/webhook, which is not the address of the running relay`,
      fix: ADD,
    })
  })

  it('finds a repository of --hook where none could be made', async () => {
    const { context } = testContext({ env: { ...alone.shell.env, RELAY_PORT: '0' } })
    const prepared = prepare(context, {})
    await using serving = await serve(completeSettings(prepared.options), {
      onTaken: publish(prepared, ['octo/demo', 'octo/nowhere']),
    })
    const env = { RELAY_PUBLIC_URL: serving.url }
    expect(await check('hooks', env)).toEqual({
      state: 'fail',
      text: `none of octo/demo sends to ${serving.url}/webhook`,
      fix: ADD,
    })
    await add()
    await alone.sandbox.idle()
    expect(await check('hooks', env)).toEqual({
      state: 'fail',
      text: 'those of octo/nowhere cannot be seen (The sandbox refused: Not Found (no such repository or number, or no access to it))',
      fix: 'relay hook add octo/nowhere, which says what is missing',
    })
  })
})

describe('the check of the client', () => {
  it('is known at the code host', async () => {
    expect(await check('client')).toEqual({
      state: 'ok',
      text: `client id relay-test (RELAY_CLIENT_SECRET); ${alone.sandbox.url} knows it`,
    })
  })

  it.each([{ RELAY_CLIENT_ID: 'other' }, { RELAY_CLIENT_SECRET: 'other' }])(
    'is unknown with %j',
    async (env) => {
      expect(await check('client', env)).toEqual({
        state: 'fail',
        text: `${alone.sandbox.url} does not know client ${'RELAY_CLIENT_ID' in env ? 'other' : 'relay-test'}, or its secret`,
        fix: 'correct RELAY_CLIENT_ID and RELAY_CLIENT_SECRET',
      })
    },
  )

  it('says so where the code host does not answer', async () => {
    alone.sandbox.faults.next('token', '502')
    expect(await check('client')).toEqual({
      state: 'ok',
      text: `client id relay-test (RELAY_CLIENT_SECRET); ${alone.sandbox.url} did not say whether it knows it`,
    })
  })
})
