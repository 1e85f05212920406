import { describe, expect, it } from 'vitest'
import { saveProfile } from '../../../../src/instance/profile.js'
import { testContext } from '../../../helpers/context.js'
import { serveFor } from '../../rig.js'
import { closeAfter, finding, profile, SECRETS } from './rig.js'

/** A check of a served profile in a terminal with this environment. */
async function seen(check: string, terminal: Record<string, string>) {
  const { context } = await profile()
  const serving = closeAfter(await serveFor(context))
  const { context: other } = testContext({ env: { ...context.env, ...terminal } })
  return { url: serving.url, found: await finding(check, Promise.resolve({ context: other })) }
}

describe('with a running instance, the check of', () => {
  it('this shell: a variable that contradicts it', async () => {
    expect((await seen('this shell', {})).found).toEqual(['ok', `agrees with process ${process.pid}`])
    expect((await seen('this shell', { RELAY_STORE: 'keychain' })).found).toEqual([
      'fail',
      `RELAY_STORE is keychain, but process ${process.pid} serves profile default with --store file`,
      'unset the variable, or name another profile with --profile',
    ])
  })

  it('the webhook secret: another one than it has, without showing either', async () => {
    const { found } = await seen('webhook secret', { RELAY_WEBHOOK_SECRET: 'another-canary-secret-9' })
    expect(found).toEqual([
      'fail',
      `RELAY_WEBHOOK_SECRET holds another secret than process ${process.pid} has`,
      'set RELAY_WEBHOOK_SECRET to the secret that relay serve was started with',
    ])
    expect(JSON.stringify(found)).not.toContain(SECRETS.RELAY_WEBHOOK_SECRET)
  })
})

it('names relay itself when it holds the port, and a port that is free', async () => {
  const { context } = await profile()
  const serving = closeAfter(await serveFor(context))
  const port = new URL(serving.url).port
  const env = { ...context.env, RELAY_PROFILE: 'other', RELAY_PORT: port }
  const { context: other } = testContext({ env, cwd: context.cwd })
  saveProfile(`${context.env['RELAY_HOME']}/other`, {
    store: 'file',
    provider: null,
    providerUrl: null,
    sandbox: false,
  })
  const [state, text, fix = ''] = (await finding('port', Promise.resolve({ context: other }))) ?? []
  expect([state, text]).toEqual([
    'fail',
    `${port} is in use by relay itself: process ${process.pid} serves profile default there`,
  ])
  const [, free = ''] = /^relay serve --port (\d+) --profile other$/.exec(fix) ?? []
  const again = testContext({ env: { ...env, RELAY_PORT: free } })
  expect(await finding('port', Promise.resolve(again))).toEqual(['ok', `${free} is free`])
})
