import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { checkHooks } from '../../../../src/cli/commands/doctor/hooks.js'
import { checkClient } from '../../../../src/cli/commands/doctor/oauth-client.js'
import { createCheckContext } from '../../../../src/cli/commands/doctor/context.js'
import type { Flags } from '../../../../src/cli/settings/read.js'
import { attach } from '../../../../src/cli/session/attach.js'
import { silentLog } from '../../../../src/base/log.js'
import { openJournal } from '../../../../src/journal/open.js'
import { sendOnce } from '../../../../src/net/send-once.js'
import { openDatabase } from '../../../../src/store/open.js'
import { profileFolder } from '../../../../src/cli/settings/complete.js'
import { testContext } from '../../../helpers/context.js'
import { delivery } from '../../../journal/rig.js'
import { type Alone, startAlone } from '../../rig.js'

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
  const checked = createCheckContext(attached, database.store)
  const options = { sendOnce, timeLimit: 5000, signal: context.signal }
  return name === 'hooks' ? await checkHooks(checked, database, options) : await checkClient(checked, options)
}

async function receiveOne(): Promise<void> {
  const { context } = testContext({ env: alone.shell.env })
  const { options } = await attach(context, {}, { tolerant: true })
  await using database = await openDatabase({ kind: 'file', folder: profileFolder(options) })
  const journal = openJournal(database.sql, { log: silentLog })
  await journal.append(delivery('one', { repo: 'octo/demo' }))
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

describe('the check of hooks', () => {
  it('needs a sign-in, and a repository in the journal', async () => {
    expect(await check('hooks', { RELAY_USER: 'grace' })).toEqual({
      state: 'skip',
      text: 'asking about them needs a sign-in',
    })
    expect(await check('hooks')).toEqual({
      state: 'skip',
      text: 'the journal has no delivery of a repository',
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
    [{ content_type: 'json' }, {}, 'has no secret, so that relay refuses its deliveries'],
    [{ content_type: 'json', secret: 's' }, { active: false }, 'is inactive'],
    [{ content_type: 'json', secret: 's' }, {}, 'failed last: 502 failed to connect to host'],
  ])('finds what is wrong with %j %j', async (config, rest, why) => {
    await receiveOne()
    await addHook(config, rest)
    expect(await check('hooks')).toEqual({
      state: 'fail',
      text: `that of octo/demo ${why}`,
      fix: 'relay hook add octo/demo',
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
