import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { DeliveryLog } from '../../src/sandbox/hooks.js'
import type { Sandbox } from '../../src/sandbox/sandbox.js'
import { closedPort, type ScriptedServer, scriptedServer } from '../helpers/scripted-server.js'
import { answerOf, call, json, NOW, refusal, signIn, start } from './sandbox-rig.js'

interface Entry {
  readonly guid: string
  readonly event: string
  readonly status_code: number
  readonly redelivery: boolean
}

const DAY = 86_400_000

let now: number
let sandbox: Sandbox
let port: number
let headers: { authorization: string }
let hook: string
beforeEach(async () => {
  now = NOW
  port = await closedPort()
  sandbox = await start({ clock: () => now })
  headers = await signIn(sandbox, 'repo')
  const config = { url: `http://127.0.0.1:${port}/hook`, content_type: 'json', secret: 'hush' }
  const body = { config, events: ['issue_comment'] }
  const made = await json<{ id: number }>(call(sandbox, 'POST /repos/octo/demo/hooks', headers, body))
  hook = `/repos/octo/demo/hooks/${made.id}`
  await sandbox.idle()
})
afterEach(() => sandbox[Symbol.asyncDispose]())

/** A receiver at the hook's address. */
const receive = (status = 200): Promise<ScriptedServer> =>
  scriptedServer(() => ({ status, headers: { 'content-type': 'text/plain' }, body: 'noted' }), port)
const log = (query = ''): Promise<Response> => call(sandbox, `GET ${hook}/deliveries${query}`, headers)
const entries = (query = ''): Promise<Entry[]> => json<Entry[]>(log(query))
/** Ids as text: JSON.parse rounds them. */
const ids = async (query = ''): Promise<string[]> =>
  [...(await (await log(query)).text()).matchAll(/"id":(\d+),"guid"/g)].map(([, id = '']) => id)
const comment = async (body: string): Promise<void> => {
  await call(sandbox, 'POST /repos/octo/demo/issues/1/comments', headers, { body })
  await sandbox.idle()
}
const redeliver = async (id: string | undefined): Promise<number> => {
  const { status } = await call(sandbox, `POST ${hook}/deliveries/${id}/attempts`, headers)
  await sandbox.idle()
  return status
}

describe('the delivery log', () => {
  it('shows what could not be delivered, and how each ended, newest first', async () => {
    await comment('away')
    {
      await using receiver = await receive(503)
      await comment('refused')
      expect(receiver.received).toHaveLength(1)
    }
    await using receiver = await receive(202)
    await comment('taken')
    const common = {
      id: expect.any(Number),
      guid: expect.stringMatching(/^[0-9a-f-]{36}$/),
      delivered_at: '2026-05-04T03:02:01.000Z',
      redelivery: false,
      duration: expect.any(Number),
      event: 'issue_comment',
      action: 'created',
      installation_id: null,
      repository_id: 101,
      throttled_at: null,
      url: `http://127.0.0.1:${port}/hook`,
    }
    const away = { status: 'failed to connect to host', status_code: 502 }
    expect(await entries()).toEqual([
      { ...common, status: 'OK', status_code: 202 },
      { ...common, status: 'Invalid HTTP Response: 503', status_code: 503 },
      { ...common, ...away },
      { ...common, ...away, event: 'ping', action: null },
    ])
    expect((await entries()).map(({ guid }) => guid)[0]).toBe(
      receiver.received[0]?.headers['x-github-delivery'],
    )
  })

  it('has ids that a JavaScript number cannot hold', async () => {
    await comment('one')
    const [first, second] = await ids()
    expect(BigInt(first ?? 0) - BigInt(second ?? 0)).toBe(1n)
    expect(Number(first)).toBe(Number(second))
  })

  it('is read page by page along its cursors, though new deliveries arrive meanwhile', async () => {
    for (const body of ['one', 'two', 'three', 'four']) await comment(body)
    const all = await ids()
    const seen: string[] = []
    let query = '?per_page=2'
    while (query !== '') {
      const answer = await log(query)
      const [, next] = /^<([^>]+cursor=v1_\d+)>; rel="next"$/.exec(answer.headers.get('link') ?? '') ?? []
      seen.push(...[...(await answer.text()).matchAll(/"id":(\d+),"guid"/g)].map(([, id = '']) => id))
      query = next === undefined ? '' : new URL(next).search
      await comment('meanwhile')
    }
    expect(seen).toEqual(all)
    expect(await answerOf(await log('?cursor=second'))).toEqual(refusal(400, 'Invalid cursor'))
  })

  it('forgets after 3 days', async () => {
    await comment('one')
    now += 2 * DAY
    await comment('two')
    const [newer, older] = await ids()
    now += DAY
    expect(await ids()).toEqual([newer, older, expect.any(String)])
    now += 1
    expect(await ids()).toEqual([newer])
    expect(await redeliver(older)).toBe(404)
  })

  it.each(['7', '3842091948768999999', '99999999999999999999999'])('has no delivery %s', async (id) => {
    expect(await redeliver(id)).toBe(404)
  })
})

describe('a redelivery', () => {
  it('sends the same bytes and headers again, and is an entry of its own', async () => {
    await comment('Grüße 🎉')
    const [id] = await ids()
    const [{ guid } = { guid: '' }] = await entries()
    await using receiver = await receive()
    expect([await redeliver(id), await redeliver(id)]).toEqual([202, 202])
    const [first, second] = receiver.received
    expect(first?.headers['x-github-delivery']).toBe(guid)
    expect(JSON.parse(first?.body ?? '')).toMatchObject({ comment: { body: 'Grüße 🎉' } })
    expect([second?.body, second?.headers]).toEqual([first?.body, first?.headers])
    expect(
      (await entries()).map((entry) => [entry.guid === guid, entry.redelivery, entry.status_code]),
    ).toEqual([
      [true, true, 200],
      [true, true, 200],
      [true, false, 502],
      [false, false, 502],
    ])
  })

  it('goes to the hook as it is now: its address and its secret', async () => {
    await comment('one')
    const [id] = await ids()
    await using moved = await scriptedServer(() => ({}))
    const settings = (url: string) => ({ config: { url, content_type: 'json', secret: 'new' } })
    await call(sandbox, `PATCH ${hook}`, headers, settings(moved.url))
    await redeliver(id)
    await using receiver = await receive()
    await call(sandbox, `PATCH ${hook}`, headers, settings(`http://127.0.0.1:${port}/hook`))
    await redeliver(id)
    const [[one], [other]] = [moved.received, receiver.received]
    expect(one?.body).toBe(other?.body)
    expect(one?.headers['x-hub-signature-256']).toBe(other?.headers['x-hub-signature-256'])
  })
})

const logged = (hookId: number, payload: string) => ({
  hookId,
  payload,
  guid: 'a',
  event: 'push',
  action: null,
  repositoryId: 1,
  installationId: null,
  contentType: 'json' as const,
  url: 'http://127.0.0.1/',
  redelivery: false,
  deliveredAt: 0,
  duration: 0,
  status: 'OK',
  statusCode: 200,
  failure: undefined,
})

it('keeps at most so many deliveries of all hooks, the newest', () => {
  const log = new DeliveryLog(() => 0, { entries: 3, payloads: 1000 })
  for (const [hook, payload] of [
    [1, 'a'],
    [2, 'b'],
    [1, 'c'],
    [2, 'd'],
  ] as const)
    log.add(logged(hook, payload))
  expect([1, 2].map((hook) => log.of(hook).map(({ payload }) => payload))).toEqual([['c'], ['d', 'b']])
})

it('keeps at most so many characters of payloads', () => {
  const log = new DeliveryLog(() => 0, { entries: 100, payloads: 10 })
  for (const payload of ['aaaa', 'bbbb', 'cccc', 'd']) log.add(logged(1, payload))
  expect(log.of(1).map(({ payload }) => payload)).toEqual(['d', 'cccc', 'bbbb'])
})
