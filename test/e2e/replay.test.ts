import { createHmac, timingSafeEqual } from 'node:crypto'
import { createRequire } from 'node:module'
import { readdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { Webhooks } from '@octokit/webhooks'
import { describe, expect, it } from 'vitest'
import { type Fixture, fixtureText } from '../../src/fixtures/fixture.js'
import { type Ran, shell } from '../cli/rig.js'
import { emptyFolder } from '../helpers/context.js'
import { SECRET } from '../helpers/delivery.js'
import { Program } from '../helpers/program.js'
import { type Handed, startTarget, valuesOf } from '../helpers/target.js'

const here = path.resolve('.')
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
  ])('%s: relay serve takes all, and none that is tampered with', async (provider, flags) => {
    const folder = `fixtures/${provider}`
    const files = filesIn(folder).length
    const user = shell({ RELAY_WEBHOOK_SECRET: SECRET })
    await using program = new Program(['serve', '--port', '0', '--json', ...flags], user.env)
    await program.url()
    const replay = (...argv: string[]) => user.run(['replay', folder, ...argv], { cwd: here })
    expect(verdicts(await replay())).toEqual({ code: 0, ok: files, failed: 0 })
    const refused = await replay('--tamper', 'signature', '--expect', '401')
    expect(verdicts(refused)).toEqual({ code: 0, ok: files, failed: 0 })
    const other = { RELAY_WEBHOOK_SECRET: 'another' }
    const signedAnew = await user.run(['replay', folder], { cwd: here, env: other })
    expect(verdicts(signedAnew)).toEqual({ code: 3, ok: 0, failed: files })
  })

  it('a verifier that is not ours takes all, and none that is tampered with', async () => {
    const files = filesIn('fixtures').length
    const user = shell({ RELAY_WEBHOOK_SECRET: SECRET, OTHER: 'another' })
    const run = async (secret: string, ...argv: string[]): Promise<unknown> => {
      await using target = await startTarget()
      const ran = await user.run(['replay', 'fixtures', '--to', target.url, ...argv], { cwd: here })
      const webhooks = new Webhooks({ secret })
      const genuine = await Promise.all(target.received.map((handed) => isGenuine(webhooks, handed)))
      return { ...Object(verdicts(ran)), genuine: genuine.filter(Boolean).length }
    }
    const sent = { code: 0, ok: files, failed: 0 }
    expect(await run(SECRET)).toEqual({ ...sent, genuine: files })
    expect(await run('another', '--secret-env', 'OTHER')).toEqual({ ...sent, genuine: files })
    expect(await run(SECRET, '--set', 'changed=true')).toEqual({ ...sent, genuine: files })
    expect(await run(SECRET, '--tamper', 'signature')).toEqual({ ...sent, genuine: 0 })
    expect(await run(SECRET, '--tamper', 'body')).toEqual({ ...sent, genuine: 0 })
  })
})

/** Gitea signs the JSON inside a form, which @octokit/webhooks knows nothing of. */
async function isGenuine(webhooks: Webhooks, handed: Handed): Promise<boolean> {
  const [signature = ''] = valuesOf(handed, 'x-hub-signature-256')
  const text = handed.body.toString()
  const [type] = valuesOf(handed, 'content-type')
  const inside = type?.includes('urlencoded') && valuesOf(handed, 'x-gitea-event').length > 0
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
      writeFileSync(path.join(cwd, `${String(i).padStart(3, '0')}.json`), fixtureText(fixture))
    }
    await using target = await startTarget((handed) => (signatureFits(handed) ? 200 : 401))
    const user = shell({ RELAY_WEBHOOK_SECRET: SECRET })
    const serve = ['serve', '--port', '0', '--json', '--forward', target.url]
    await using program = new Program(serve, user.env)
    await program.url()
    expect(verdicts(await user.run(['replay', '.'], { cwd }))).toEqual({ code: 0, ok: 329, failed: 0 })
    await program.objects({ type: 'attempt', outcome: 'succeeded' }, 329)
    const handed = target.received.map((each) => [valuesOf(each, 'x-github-event')[0], each.body.toString()])
    expect(handed).toEqual(all.map(({ event, body }) => [event, body]))
  })
})

/** On its own, with nothing of relay's. */
function signatureFits(handed: Handed): boolean {
  const [signature = ''] = valuesOf(handed, 'x-hub-signature-256')
  const right = Buffer.from(`sha256=${createHmac('sha256', SECRET).update(handed.body).digest('hex')}`)
  const given = Buffer.from(signature)
  return given.length === right.length && timingSafeEqual(given, right)
}
