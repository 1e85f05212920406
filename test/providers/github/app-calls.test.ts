import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Secret } from '../../../src/base/secret.js'
import { isUnknownApp } from '../../../src/providers/errors.js'
import { createProvider } from '../../../src/providers/open.js'
import type { AppCalls, AppIdentity } from '../../../src/providers/registration.js'
import { startSandbox, type TestSandbox } from '../../../src/testing/index.js'
import { installApp, makeApp } from '../../helpers/app.js'
import { scriptedServer } from '../../helpers/scripted-server.js'

const REPO = { owner: 'octo', repo: 'demo' }

let sandbox: TestSandbox & AsyncDisposable
let apps: AppCalls
let app: AppIdentity
let url: string
beforeEach(async () => {
  sandbox = await startSandbox()
  url = `${sandbox.url}/no-receiver`
  const made = await makeApp(sandbox.url, { url, active: true })
  apps = made.apps
  app = made.app
})
afterEach(() => sandbox[Symbol.asyncDispose]())

/** Makes the sandbox send so many deliveries. */
async function comment(count: number): Promise<void> {
  const provider = createProvider({ name: 'sandbox', url: sandbox.url })
  const token = await sandbox.token('repo')
  for (let n = 0; n < count; n++)
    await provider.comment(token, { ...REPO, issueNumber: 1, body: `comment ${n}` })
  await sandbox.idle()
}

describe('an App', () => {
  it('asks where it is installed', async () => {
    const installUrl = `${sandbox.url}/apps/${app.slug}/installations/new`
    expect(await apps.describe(app)).toEqual({ installUrl, installations: 0 })
    expect(await apps.isInstalled(app, REPO)).toBe(false)
    await installApp(installUrl)
    expect(await apps.describe(app)).toEqual({ installUrl, installations: 1 })
    expect(await apps.isInstalled(app, REPO)).toBe(true)
    expect(await apps.isInstalled(app, { owner: 'octo', repo: 'nowhere' })).toBe(false)
  })

  it('shows and changes its webhook', async () => {
    expect(await apps.hook.show(app)).toEqual({ url, contentType: 'json', hasSecret: true })
    await apps.hook.change(app, { secret: new Secret('another') })
    expect(await apps.hook.show(app)).toMatchObject({ url })
    await apps.hook.change(app, { secret: new Secret('another'), url: `${url}/moved` })
    expect(await apps.hook.show(app)).toEqual({ url: `${url}/moved`, contentType: 'json', hasSecret: true })
  })

  it('reads the log of its webhook in pages, and has entries sent again', async () => {
    await installApp((await apps.describe(app)).installUrl)
    await comment(101)
    const first = await apps.hook.page(app, undefined)
    const second = await apps.hook.page(app, first.next)
    expect([first.deliveries.length, second.deliveries.map(({ event }) => event), second.next]).toEqual([
      100,
      ['issue_comment', 'installation', 'ping'],
      undefined,
    ])
    const [newest] = first.deliveries
    await apps.hook.redeliver(app, newest?.id ?? '')
    await sandbox.idle()
    const [again] = (await apps.hook.page(app, undefined)).deliveries
    expect(again).toMatchObject({ guid: newest?.guid, redelivery: true })
    expect(again?.id).not.toBe(newest?.id)
  })

  it('is refused once it or its key is gone, each in its own way', async () => {
    const other = { ...app, id: 999 }
    for (const call of [
      apps.describe(other),
      apps.isInstalled(other, REPO),
      apps.hook.page(other, undefined),
    ]) {
      const error: unknown = await call.catch((thrown: unknown) => thrown)
      expect([error, isUnknownApp(error)]).toEqual([expect.objectContaining({ kind: 'not_found' }), true])
    }
    await using elsewhere = await startSandbox()
    const { app: stranger } = await makeApp(elsewhere.url)
    await expect(apps.hook.show({ ...app, privateKey: stranger.privateKey })).rejects.toMatchObject({
      kind: 'invalid_token',
      message: 'Invalid or expired token',
      upstreamMessage: 'A JSON web token could not be decoded',
    })
  })

  it('is never quoted with its token', async () => {
    await using echo = await scriptedServer(({ headers }) => ({
      status: 422,
      body: { message: `no: ${headers.authorization}` },
    }))
    const provider = createProvider({ name: 'sandbox', url: echo.url })
    const error: unknown = await provider.registration.apps?.describe(app).catch((thrown: unknown) => thrown)
    expect(String(error)).toContain('no: ')
    expect(String(error)).not.toMatch(/eyJ/)
  })
})
