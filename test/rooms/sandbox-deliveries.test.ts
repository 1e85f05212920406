import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Sandbox } from '../../src/sandbox/sandbox.js'
import { closedPort, type ScriptedServer, scriptedServer } from '../helpers/scripted-server.js'
import { answerOf, call, json, NOW, refusal, signIn, start } from './sandbox-rig.js'

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
})

describe('a redelivery', () => {
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
