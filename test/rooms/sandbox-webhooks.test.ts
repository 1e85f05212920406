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
})
