import { createHmac } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { type Log, silentLog } from '../../src/base/log.js'
import { Secret } from '../../src/base/secret.js'
import type { Sandbox } from '../../src/sandbox/sandbox.js'
import {
  type Answer,
  type Received,
  type ScriptedServer,
  scriptedServer,
} from '../helpers/scripted-server.js'
import { call, signIn, start } from './sandbox-rig.js'

const SECRET = "It's a Secret to Everybody"

interface Pair extends AsyncDisposable {
  readonly sandbox: Sandbox
  readonly receiver: ScriptedServer
  readonly warnings: string[]
}

/** Sandbox and the server that receives its webhooks. */
async function startPair(answer: (request: Received) => Answer = () => ({})): Promise<Pair> {
  const receiver = await scriptedServer(answer)
  const warnings: string[] = []
  const log: Log = { ...silentLog, warn: (message) => void warnings.push(message) }
  const url = (): string => `${receiver.url}/webhook`
  const sandbox = await start({ webhook: { url, secret: new Secret(SECRET) }, log })
  return {
    sandbox,
    receiver,
    warnings,
    async [Symbol.asyncDispose]() {
      await sandbox[Symbol.asyncDispose]()
      await receiver[Symbol.asyncDispose]()
    },
  }
}

describe('a delivery', () => {
  it('has the headers of a GitHub Enterprise Server, and signatures of its exact bytes', async () => {
    await using pair = await startPair()
    const { sandbox, receiver } = pair
    const headers = await signIn(sandbox)
    await call(sandbox, 'POST /repos/octo/demo/issues/1/comments', headers, { body: 'Grüße 🎉\u2028' })
    await sandbox.idle()

    expect(receiver.received).toHaveLength(1)
    const [delivery] = receiver.received
    if (!delivery) throw new Error('nothing came')
    const mac = (algorithm: string): string =>
      `${algorithm}=${createHmac(algorithm, SECRET).update(delivery.body).digest('hex')}`
    expect([delivery.method, delivery.path]).toEqual(['POST', '/webhook'])
    expect(delivery.headers).toEqual({
      accept: '*/*',
      connection: 'keep-alive',
      'content-length': String(Buffer.byteLength(delivery.body)),
      'content-type': 'application/json',
      host: new URL(receiver.url).host,
      'user-agent': 'GitHub-Hookshot/relay',
      'x-github-delivery': expect.stringMatching(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/),
      'x-github-enterprise-host': '127.0.0.1',
      'x-github-enterprise-version': '3.19.0',
      'x-github-event': 'issue_comment',
      'x-github-hook-id': '1',
      'x-github-hook-installation-target-id': '101',
      'x-github-hook-installation-target-type': 'repository',
      'x-hub-signature': mac('sha1'),
      'x-hub-signature-256': mac('sha256'),
    })
    expect(delivery.body).toContain('Grüße 🎉')
    expect(delivery.body).toBe(JSON.stringify(JSON.parse(delivery.body)))
  })

  it('is sent for the ping, each comment and each merge, in order, each with its own id', async () => {
    await using pair = await startPair()
    const { sandbox, receiver } = pair
    await sandbox.ping()
    expect(events(receiver)).toEqual(['ping'])
    const headers = await signIn(sandbox)
    await call(sandbox, 'POST /repos/octo/demo/issues/1/comments', headers, { body: 'one' })
    await call(sandbox, 'PUT /repos/octo/demo/pulls/2/merge', headers)
    await call(sandbox, 'POST /repos/octo/demo/issues/2/comments', headers, { body: 'two' })
    await call(sandbox, 'POST /repos/octo/demo/issues/2/reactions', headers, { content: 'heart' })
    await sandbox.idle()
    expect(events(receiver)).toEqual(['ping', 'issue_comment', 'pull_request', 'issue_comment'])
    expect(new Set(receiver.received.map(({ headers }) => headers['x-github-delivery'])).size).toBe(4)
  })

  it('is sent after the response to the request that caused it', async () => {
    const order: string[] = []
    await using pair = await startPair(() => (order.push('webhook'), {}))
    const { sandbox } = pair
    const headers = await signIn(sandbox)
    for (let i = 0; i < 20; i++) {
      await call(sandbox, 'POST /repos/octo/demo/issues/1/comments', headers, { body: 'x' })
      order.push('answer')
      await sandbox.idle()
    }
    expect(order).toEqual(Array.from({ length: 20 }, () => ['answer', 'webhook']).flat())
  })

  it('is not sent for a refused request', async () => {
    await using pair = await startPair()
    const { sandbox, receiver } = pair
    const headers = await signIn(sandbox)
    await call(sandbox, 'POST /repos/octo/demo/issues/4/comments', headers, { body: 'x' })
    await call(sandbox, 'PUT /repos/octo/demo/pulls/3/merge', headers)
    await sandbox.idle()
    expect(receiver.received).toEqual([])
  })

  it.each([
    ['is answered 503', { status: 503 }, 'it was answered 503'],
    ['is redirected', { status: 302, headers: { location: '/' } }, 'it was answered 302'],
    ['is cut off', 'reset', 'connection closed before an answer'],
  ] as const)('that %s is logged, not repeated, and the next is sent', async (_, answer, why) => {
    const answers: Answer[] = [answer, {}]
    await using pair = await startPair(() => answers.shift() ?? {})
    const { sandbox, receiver, warnings } = pair
    await sandbox.ping()
    await sandbox.ping()
    expect(events(receiver)).toEqual(['ping', 'ping'])
    expect(warnings).toEqual([`The sandbox could not deliver the webhook ping: ${why}`])
  })

  it.each(['silence', { headers: { 'content-length': '9' }, body: 'x', stalls: true }] as const)(
    'does not keep the sandbox from closing when the answer is %j',
    async (answer) => {
      let arrived = (): void => {}
      const arrival = new Promise<void>((resolve) => (arrived = resolve))
      await using receiver = await scriptedServer(() => (arrived(), answer))
      const webhook = { url: () => receiver.url, secret: new Secret(SECRET) }
      const sandbox = await start({ webhook })
      const ping = sandbox.ping()
      await arrival
      await sandbox[Symbol.asyncDispose]()
      await ping
      expect(events(receiver)).toEqual(['ping'])
    },
  )

  it('is dropped with a warning when a thousand are queued', async () => {
    await using pair = await startPair(() => 'silence')
    const { sandbox, warnings } = pair
    const issue = sandbox.state.issue('octo/demo', 1)
    const headers = await signIn(sandbox)
    const edit = `PATCH /repos/octo/demo/issues/comments/${issue && sandbox.state.addComment(issue, 'octo', 'x').id}`
    for (let i = 0; i < 10; i++)
      await Promise.all(Array.from({ length: 100 }, () => call(sandbox, edit, headers, { body: 'y' })))
    expect(warnings).toEqual([])
    await call(sandbox, edit, headers, { body: 'z' })
    expect(warnings).toEqual(['The sandbox dropped a webhook: 1000 are queued'])
  })
})

function events(receiver: ScriptedServer): (string | string[] | undefined)[] {
  return receiver.received.map(({ headers }) => headers['x-github-event'])
}
