import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Secret } from '../../../src/base/secret.js'
import type { DeliveryLogCalls, HookDelivery } from '../../../src/providers/hooks.js'
import { createProvider } from '../../../src/providers/open.js'
import type { Provider } from '../../../src/providers/provider.js'
import { startSandbox, type TestSandbox } from '../../../src/testing/start-sandbox.js'
import { verify } from '../../helpers/sign.js'
import { type ScriptedServer, scriptedServer } from '../../helpers/scripted-server.js'

const REPO = { owner: 'octo', repo: 'demo' }

let sandbox: TestSandbox & AsyncDisposable
let receiver: ScriptedServer
let provider: Provider
let token: string
let status: number
beforeEach(async () => {
  status = 200
  receiver = await scriptedServer(() => ({ status }))
  sandbox = await startSandbox()
  provider = createProvider({ name: 'sandbox', url: sandbox.url })
  token = await sandbox.token('repo')
})
afterEach(async () => {
  await sandbox[Symbol.asyncDispose]()
  await receiver[Symbol.asyncDispose]()
})

const settings = (path: string, secret = 'hush', events?: string[]) => ({
  url: receiver.url + path,
  secret: new Secret(secret),
  events,
})
const comment = async (body: string): Promise<void> => {
  await provider.comment(token, { ...REPO, issueNumber: 1, body })
  await sandbox.idle()
}
const log = (): DeliveryLogCalls => {
  if (!provider.hooks.log) throw new Error('GitHub has a delivery log')
  return provider.hooks.log
}

describe('the hooks of a repository', () => {
  it('are created, listed, changed, tested and removed', async () => {
    const { hooks } = provider
    const made = await hooks.create(token, REPO, settings('/one'))
    expect(made).toEqual({
      id: made.id,
      url: `${receiver.url}/one`,
      active: true,
      contentType: 'json',
      events: ['*'],
      hasSecret: true,
      lastResponse: undefined,
    })
    await sandbox.idle()
    const answered = { ...made, lastResponse: { code: 200, message: 'OK' } }
    expect(await hooks.list(token, REPO)).toEqual([answered])
    const changed = await hooks.change(token, REPO, made.id, settings('/two', 'other', ['push']))
    expect(changed).toEqual({ ...answered, url: `${receiver.url}/two`, events: ['push'] })
    await hooks.test(token, REPO, made.id)
    await sandbox.idle()
    const [, ping] = receiver.received
    expect([ping?.path, ping?.headers['x-github-event']]).toEqual(['/two', 'ping'])
    const signature = String(ping?.headers['x-hub-signature-256'])
    const secrets = { current: new Secret('other') }
    expect(verify(signature, Buffer.from(ping?.body ?? ''), secrets)).toBe('current')
    await hooks.remove(token, REPO, made.id)
    expect(await hooks.list(token, REPO)).toEqual([])
  })

  it('are listed from all pages', async () => {
    const events = ['push', 'issues', 'issue_comment', 'star', 'watch', 'fork']
    for (const event of events)
      for (let i = 0; i < 18; i++)
        await provider.hooks.create(token, REPO, settings(`/${event}/${i}`, 'hush', [event]))
    const all = await provider.hooks.list(token, REPO)
    expect([all.length, new Set(all.map(({ url }) => url)).size]).toEqual([108, 108])
  })

  it('are refused with what GitHub says', async () => {
    const { hooks } = provider
    const { id } = await hooks.create(token, REPO, settings('/one'))
    await expect(hooks.create(token, REPO, settings('/one'))).rejects.toMatchObject({
      kind: 'unprocessable',
      message: expect.stringContaining('Hook already exists on this repository'),
    })
    const weak = await sandbox.token('public_repo')
    await expect(hooks.list(weak, REPO)).rejects.toMatchObject({ kind: 'not_found' })
    await expect(hooks.remove(weak, REPO, id)).rejects.toMatchObject({ kind: 'not_found' })
    sandbox.faults.next('hook', 'rate-limit')
    await expect(hooks.list(token, REPO)).rejects.toMatchObject({ kind: 'rate_limited' })
  })
})

describe('the delivery log of a hook', () => {
  it('is read page by page, with ids that redeliver exactly that delivery', async () => {
    const { id } = await provider.hooks.create(token, REPO, settings('/hook', 'hush', ['issue_comment']))
    await sandbox.idle()
    status = 503
    for (let n = 0; n < 105; n++) await provider.comment(token, { ...REPO, issueNumber: 1, body: `n${n}` })
    await sandbox.idle()
    status = 200

    const first = await log().page(token, REPO, id, undefined)
    const second = await log().page(token, REPO, id, first.next)
    expect([first.deliveries.length, second.deliveries.length, second.next]).toEqual([100, 6, undefined])
    const all = [...first.deliveries, ...second.deliveries]
    expect(new Set(all.map((delivery) => delivery.id)).size).toBe(106)
    const [newest] = all
    expect(newest).toEqual({
      id: expect.stringMatching(/^\d{19}$/),
      guid: expect.stringMatching(/^[0-9a-f-]{36}$/),
      event: 'issue_comment',
      action: 'created',
      deliveredAt: expect.any(Number),
      redelivery: false,
      status: 'Invalid HTTP Response: 503',
      statusCode: 503,
    } satisfies Record<keyof HookDelivery, unknown>)

    const third = all.at(-4)
    await log().redeliver(token, REPO, id, third?.id ?? '')
    await sandbox.idle()
    const again = receiver.received.at(-1)
    expect(again?.headers['x-github-delivery']).toBe(third?.guid)
    expect(JSON.parse(again?.body ?? '')).toMatchObject({ comment: { body: 'n2' } })
    const [entry] = (await log().page(token, REPO, id, undefined)).deliveries
    expect(entry).toMatchObject({ guid: third?.guid, redelivery: true, statusCode: 200 })
  })

  it('is refused with what GitHub says', async () => {
    const { id } = await provider.hooks.create(token, REPO, settings('/hook'))
    await comment('one')
    await expect(log().redeliver(token, REPO, id, '7')).rejects.toMatchObject({ kind: 'not_found' })
    sandbox.faults.next('deliveries', '502')
    await expect(log().page(token, REPO, id, undefined)).rejects.toMatchObject({ kind: 'provider_failed' })
    sandbox.faults.next('redeliver', 'secondary-limit')
    await expect(log().redeliver(token, REPO, id, '7')).rejects.toMatchObject({
      kind: 'rate_limited',
      retryAfter: 60,
    })
  })
})
