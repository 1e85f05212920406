import { createHmac, timingSafeEqual } from 'node:crypto'
import { readdirSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { Webhooks } from '@octokit/webhooks'
import { describe, expect, it } from 'vitest'
import type { Fixture } from 'webhook-relay/testing'
import { SECRET } from '../kit/delivery.js'
import { emptyFolder } from '../kit/folder.js'
import { place } from '../kit/place.js'
import { type Received, receiver, valuesOf } from '../kit/receiver.js'
import { type Ran, run } from '../kit/run.js'

const PROJECT = path.resolve('.')
const filesIn = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) =>
    /(?<!\.schema)\.json$/.test(file),
  )

/** How many lines there are of each beginning. */
function verdicts({ code, out }: Ran): unknown {
  const lines = out.split('\n').filter(Boolean)
  const count = (start: string): number => lines.filter((line) => line.startsWith(start)).length
  return { code, ok: count('ok   '), failed: count('FAIL ') }
}

describe('the fixtures of this project, replayed', () => {
  const github = ['--provider', 'github']
  const gitea = ['--provider', 'gitea', '--provider-url', 'https://git.example.com']

  it.each([
    ['github', github],
    ['gitea', gitea],
  ])(
    '%s: relay serve takes all, and none that is tampered with',
    async (provider, flags) => {
      const folder = `fixtures/${provider}`
      const files = filesIn(folder).length
      await using here = await place({ host: 'none' })
      await here.serve(...flags)
      const cwd = PROJECT
      const replay = (...argv: string[]): Promise<Ran> => here.runWith({ cwd }, 'replay', folder, ...argv)
      expect(verdicts(await replay())).toEqual({ code: 0, ok: files, failed: 0 })
      const refused = await replay('--tamper', 'signature', '--expect', '401')
      expect(verdicts(refused)).toEqual({ code: 0, ok: files, failed: 0 })
      const other = { RELAY_WEBHOOK_SECRET: 'another' }
      const signedAnew = await here.runWith({ cwd, env: other }, 'replay', folder)
      expect(verdicts(signedAnew)).toEqual({ code: 3, ok: 0, failed: files })
    },
    120_000,
  )

  it('a verifier that is not ours takes all, and none that is tampered with', async () => {
    const files = filesIn('fixtures').length
    const env = { RELAY_WEBHOOK_SECRET: SECRET, OTHER: 'another' }
    const replay = async (secret: string, ...flags: string[]): Promise<unknown> => {
      await using target = await receiver()
      const argv = ['replay', 'fixtures', '--to', target.url, ...flags]
      const ran = await run(argv, { env, cwd: PROJECT })
      const webhooks = new Webhooks({ secret })
      const genuine = await Promise.all(target.received.map((request) => isGenuine(webhooks, request)))
      return { ...Object(verdicts(ran)), genuine: genuine.filter(Boolean).length }
    }
    const sent = { code: 0, ok: files, failed: 0 }
    expect(await replay(SECRET)).toEqual({ ...sent, genuine: files })
    expect(await replay('another', '--secret-env', 'OTHER')).toEqual({ ...sent, genuine: files })
    expect(await replay(SECRET, '--set', 'changed=true')).toEqual({ ...sent, genuine: files })
    expect(await replay(SECRET, '--tamper', 'signature')).toEqual({ ...sent, genuine: 0 })
    expect(await replay(SECRET, '--tamper', 'body')).toEqual({ ...sent, genuine: 0 })
  }, 120_000)
})

/** Gitea signs the JSON inside a form, which @octokit/webhooks knows nothing of. */
async function isGenuine(webhooks: Webhooks, request: Received): Promise<boolean> {
  const [signature = ''] = valuesOf(request, 'x-hub-signature-256')
  const text = request.body.toString()
  const [type] = valuesOf(request, 'content-type')
  const inside = type?.includes('urlencoded') && valuesOf(request, 'x-gitea-event').length > 0
  return webhooks.verify(inside ? (new URLSearchParams(text).get('payload') ?? '') : text, signature)
}

interface Example {
  readonly event: string
  readonly body: string
}

function examples(): Example[] {
  const kinds: { name: string; examples: object[] }[] = createRequire(import.meta.url)(
    '@octokit/webhooks-examples',
  )
  const all = kinds.flatMap(({ name, examples }) => examples.map((payload) => ({ name, payload })))
  return all.map(({ name, payload }, i) => ({ event: name, body: JSON.stringify(payload, null, i % 3) }))
}

describe("GitHub's example payloads", () => {
  it('go through replay and relay to a target that checks the signature, byte for byte', async () => {
    const all = examples()
    expect(all).toHaveLength(329)
    const cwd = emptyFolder()
    for (const [i, { event, body }] of all.entries()) {
      const fixture: Fixture = { relay: 1, provider: 'github', event, delivery: `${i}`, headers: {}, body }
      writeFileSync(path.join(cwd, `${String(i).padStart(3, '0')}.json`), JSON.stringify(fixture))
    }
    await using target = await receiver((request) => (signatureFits(request) ? 200 : 401))
    await using here = await place({ host: 'none' })
    const relay = await here.serve('--forward', target.url)
    const ran = await here.runWith({ cwd }, 'replay', '.')
    expect(verdicts(ran)).toEqual({ code: 0, ok: 329, failed: 0 })
    await relay.objects({ type: 'attempt', outcome: 'succeeded' }, 329)
    const handed = target.received.map((each) => [valuesOf(each, 'x-github-event')[0], each.body.toString()])
    expect(handed).toEqual(all.map(({ event, body }) => [event, body]))
  }, 120_000)
})

/** On its own, with nothing of relay's. */
function signatureFits(request: Received): boolean {
  const [signature = ''] = valuesOf(request, 'x-hub-signature-256')
  const right = Buffer.from(`sha256=${createHmac('sha256', SECRET).update(request.body).digest('hex')}`)
  const given = Buffer.from(signature)
  return given.length === right.length && timingSafeEqual(given, right)
}
