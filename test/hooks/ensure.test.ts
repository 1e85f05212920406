import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Secret } from '../../src/base/secret.js'
import { ensureHook } from '../../src/hooks/ensure.js'
import { createProvider } from '../../src/providers/open.js'
import type { Provider } from '../../src/providers/provider.js'
import { startSandbox, type TestSandbox } from '../../src/testing/start-sandbox.js'
import { verify } from '../helpers/sign.js'
import { type ScriptedServer, scriptedServer } from '../helpers/scripted-server.js'

const REPO = { owner: 'octo', repo: 'demo' }

let sandbox: TestSandbox & AsyncDisposable
let receiver: ScriptedServer
let provider: Provider
let token: string
beforeEach(async () => {
  receiver = await scriptedServer(() => ({}))
  sandbox = await startSandbox()
  provider = createProvider({ name: 'sandbox', url: sandbox.url })
  token = await sandbox.token('repo')
})
afterEach(async () => {
  await sandbox[Symbol.asyncDispose]()
  await receiver[Symbol.asyncDispose]()
})

const wanted = (events?: string[]) => ({
  token,
  repo: REPO,
  settings: { url: `${receiver.url}/webhook`, secret: new Secret('hush'), events },
})
const ensure = (events?: string[]) => ensureHook(provider.hooks, wanted(events))
const list = () => provider.hooks.list(token, REPO)
/** Makes a hook as another program might have. */
const make = (config: object, more: object = {}): Promise<Response> =>
  fetch(`${sandbox.url}/api/v3/repos/octo/demo/hooks`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}` },
    body: JSON.stringify({ config: { url: wanted().settings.url, ...config }, ...more }),
  })

describe('the hook of a repository', () => {
  it('is created once, and found again by its address', async () => {
    const first = await ensure()
    expect(first).toMatchObject({ created: true, repaired: [], hook: { events: ['*'], active: true } })
    const second = await ensure()
    expect([second.created, second.repaired, second.hook.id]).toEqual([false, [], first.hook.id])
    expect(await list()).toHaveLength(1)
  })

  it('is repaired: inactive, a form, without a secret, with other events', async () => {
    await make({}, { active: false, events: ['push'] })
    const { created, repaired, hook } = await ensure(['issues'])
    expect([created, repaired]).toEqual([
      false,
      ['it was inactive', 'it sent form', 'it had no secret', 'it had other events'],
    ])
    expect(hook).toMatchObject({ active: true, contentType: 'json', hasSecret: true, events: ['issues'] })
  })

  it('gets this secret, though another one is not shown', async () => {
    await make({ content_type: 'json', secret: 'other' }, { events: ['*'] })
    const { hook } = await ensure()
    await sandbox.idle()
    const before = receiver.received.length
    await provider.hooks.test(token, REPO, hook.id)
    await sandbox.idle()
    const [ping] = receiver.received.slice(before)
    const signature = String(ping?.headers['x-hub-signature-256'])
    expect(verify(signature, Buffer.from(ping?.body ?? ''), { current: new Secret('hush') })).toBe('current')
  })

  it('is one: others with its address are removed, those elsewhere stay', async () => {
    await make({}, { events: ['push'] })
    await make({}, { events: ['issues'] })
    await make({ url: `${receiver.url}/elsewhere` })
    const { hook } = await ensure()
    expect((await list()).map(({ id, url }) => [id === hook.id, new URL(url).pathname])).toEqual([
      [true, '/webhook'],
      [false, '/elsewhere'],
    ])
  })

  it('is one when two relays make it at the same time', async () => {
    const both = await Promise.all([ensure(), ensure()])
    expect(new Set(both.map(({ created }) => created))).toEqual(new Set([true, false]))
    expect(new Set(both.map(({ hook }) => hook.id)).size).toBe(1)
    expect(await list()).toHaveLength(1)
  })

  it('is refused without the right to make it, and when there are too many', async () => {
    const weak = { ...wanted(), token: await sandbox.token('public_repo') }
    await expect(ensureHook(provider.hooks, weak)).rejects.toMatchObject({ kind: 'not_found' })
    for (let i = 0; i < 20; i++) await make({ url: `${receiver.url}/${i}` }, { events: ['*'] })
    await expect(ensure()).rejects.toMatchObject({
      kind: 'unprocessable',
      message: expect.stringContaining('cannot have more than 20 hooks'),
    })
  })
})
