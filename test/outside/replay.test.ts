import { createHmac, timingSafeEqual } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { Webhooks } from '@octokit/webhooks'
import { describe, expect, it } from 'vitest'
import { type Fixture, loadFixtures } from 'webhook-relay/testing'
import { SECRET, sign } from '../kit/delivery.js'
import { emptyFolder } from '../kit/folder.js'
import { fill, linesOf } from '../kit/journal.js'
import { place } from '../kit/place.js'
import { type Received, receiver, valuesOf } from '../kit/receiver.js'
import { BUILT, fails, type Ran, run, start } from '../kit/run.js'
import { bare, GITEA_TRIGGERS, GITHUB_TRIGGERS, objects, opened } from './example.js'

const env = { RELAY_WEBHOOK_SECRET: SECRET }
const BODY = '{"action":"opened","number":1,"zen":"<é>"}\n'

function fixture(more: Partial<Fixture> = {}): Fixture {
  return {
    relay: 1,
    provider: 'github',
    event: 'pull_request',
    delivery: 'recorded-id',
    headers: {
      'content-TYPE': 'application/json',
      'X-GitHub-Event': 'pull_request',
      'X-GitHub-Delivery': 'recorded-id',
      'X-Hub-Signature-256': sign(SECRET, BODY),
    },
    body: BODY,
    ...more,
  }
}

/** A folder with these fixtures. */
function folder(files: Readonly<Record<string, Fixture | string>>): string {
  const cwd = emptyFolder()
  for (const [name, content] of Object.entries(files))
    writeFileSync(path.join(cwd, name), typeof content === 'string' ? content : JSON.stringify(content))
  return cwd
}

const signedBy = (request: Received, secret: string): boolean =>
  valuesOf(request, 'x-hub-signature-256')[0] === sign(secret, request.body)

const tidy = (out: string): string => out.replaceAll(/\d+ms/g, 'Nms')

describe('relay replay', () => {
  it('sends files in order, prints a line for each, and ends with 3 when an answer was not as expected', async () => {
    await using target = await receiver()
    const refusal = { status: 500, body: '{"error":"no installation"}\n' }
    target.answers(202, refusal, { status: 302, headers: { location: '/x' } })
    const cwd = folder({ 'c.json': fixture(), 'a.json': fixture(), 'b-long.json': fixture() })
    const { code, out, err } = await run(['replay', '.', '--to', `${target.url}/hook?x=1`], { env, cwd })
    expect({ code, out: tidy(out), err }).toEqual({
      code: 3,
      out:
        'ok   a.json       202  Nms\n' +
        'FAIL b-long.json  500  Nms  expected 2xx: {"error":"no installation"}\n' +
        'FAIL c.json       302  Nms  expected 2xx\n',
      err: 'error: 2 of 3 answers were not as expected\n',
    })
    expect(target.received.map((handed) => handed.path)).toEqual(Array(3).fill('/hook?x=1'))
  })

  it('sends recorded bytes, headers and signature as they are, but for a fresh id', async () => {
    await using target = await receiver()
    const cwd = folder({ 'a.json': fixture() })
    const replay = async (...flags: string[]) =>
      (await run(['replay', 'a.json', '--to', target.url, ...flags], { env, cwd })).code
    expect([await replay(), await replay('--keep-id')]).toEqual([0, 0])
    const [fresh, kept] = target.received
    const sent = (handed?: Received) =>
      handed?.headers.filter(([name]) => !/^(?:host|connection|content-length)$/i.test(name))
    expect(sent(kept)).toEqual(Object.entries(fixture().headers))
    expect(sent(fresh)?.map(([name]) => name)).toEqual(Object.keys(fixture().headers))
    expect(fresh && valuesOf(fresh, 'x-github-delivery')[0]).toMatch(/^[0-9a-f-]{36}$/)
    expect([fresh?.body.toString(), kept?.body.toString()]).toEqual([BODY, BODY])
  })

  it('signs again with another secret, and as Gitea does for Gitea', async () => {
    await using target = await receiver()
    const gitea = readFileSync('fixtures/gitea/push.newest.json', 'utf8')
    const cwd = folder({ 'a.json': fixture(), 'gitea.json': gitea })
    const argv = ['replay', 'a.json', 'gitea.json', '--to', target.url, '--secret-env', 'OTHER']
    expect((await run(argv, { env: { ...env, OTHER: 'other' }, cwd })).code).toBe(0)
    const [github, second] = target.received
    expect(github && signedBy(github, 'other')).toBe(true)
    expect(second && signedBy(second, 'other')).toBe(true)
    expect(second && valuesOf(second, 'x-gitea-signature')).toEqual([
      sign('other', second?.body ?? Buffer.of()).slice(7),
    ])
    const ids = second && ['x-gitea-delivery', 'x-github-delivery'].map((name) => valuesOf(second, name)[0])
    expect(new Set(ids).size).toBe(1)
  })

  it('to the running relay: accepted, refused when tampered with', async () => {
    await using here = await place({ host: 'none' })
    await here.serve()
    const cwd = folder({ 'a.json': fixture() })
    const run = (...argv: string[]): Promise<Ran> => here.runWith({ cwd }, 'replay', ...argv)
    expect(await run('a.json')).toMatchObject({ code: 0, err: '1 sent\n' })
    for (const tamper of ['signature', 'body']) {
      expect(await run('a.json', '--tamper', tamper)).toMatchObject({ code: 0, err: '1 sent\n' })
      expect(await run('a.json', '--tamper', tamper, '--expect', '401')).toMatchObject({ code: 0 })
      const { code, out } = await run('a.json', '--tamper', tamper, '--expect', '2xx')
      expect([code, out]).toEqual([3, expect.stringContaining('expected 2xx: {"error":"Invalid signature"}')])
    }
    expect(tidy((await run('last')).out)).toBe('ok   #1  200  Nms\n')
    expect((await run('--event', 'pull_request.opened', '--last', '2')).code).toBe(0)
    expect((await linesOf(here)).map(({ duplicates }) => duplicates)).toEqual([0, 0, 0, 0])
  })

  it('selects in the journal, oldest first, and keeps the ids of those that failed', async () => {
    await using target = await receiver()
    await using here = await bare({ env })
    const failed = { status: 'failed', reason: 'answered 500' } as const
    await fill(here, [
      opened('a'),
      opened('b', { event: 'push', action: null }),
      opened('c', { forwards: { '*=http://localhost:1': failed } }),
    ])
    const run = async (...argv: string[]) => {
      const { code, out, err } = await here.run('replay', ...argv, '--to', target.url, '--json')
      const lines = out.split('\n').filter(Boolean)
      return code === 0 ? lines.map((line): unknown => JSON.parse(line).name) : [code, JSON.parse(err).code]
    }
    expect(await run('--last', '2')).toEqual(['#2', '#3'])
    expect(await run('--event', 'pull_request', '--event', 'issues')).toEqual(['#1', '#3'])
    expect(await run('2', '#1', 'last')).toEqual(['#2', '#1', '#3'])
    expect(await run('--failed')).toEqual(['#3'])
    expect(target.received.map((handed) => valuesOf(handed, 'x-github-delivery')[0]).at(-1)).toBe('c')
    expect(await run('7')).toEqual([6, 'no_match'])
    expect(await run('--event', 'ping')).toEqual([6, 'no_match'])
  })

  it('takes a bare payload with --event, from a file or standard input', async () => {
    await using target = await receiver()
    const argv = ['replay', '-', '--event', 'ping', '--to', target.url]
    expect((await run(argv, { env, stdin: '{"zen": 1 }' })).code).toBe(0)
    const [handed] = target.received
    expect(handed?.body.toString()).toBe('{"zen": 1 }')
    expect(handed && valuesOf(handed, 'x-github-event')).toEqual(['ping'])
    expect(handed && signedBy(handed, SECRET)).toBe(true)
  })

  it('stops at the first failure with --stop', async () => {
    await using target = await receiver('reset')
    const cwd = folder({ 'a.json': fixture(), 'b.json': fixture() })
    const ran = await run(['replay', '.', '--to', target.url, '--stop'], { env, cwd })
    const out = 'FAIL a.json  -  Nms  expected 2xx: connection closed before an answer\n'
    const stopped = fails(3, '1 of 1 answers were not as expected')
    expect({ ...ran, out: tidy(ran.out) }).toEqual({ ...stopped, out })
  })

  it('reports how many were sent when it is interrupted', async () => {
    await using target = await receiver('hang')
    target.answers(200)
    const cwd = folder({ 'a.json': fixture(), 'b.json': fixture(), 'c.json': fixture() })
    await using running = start(['replay', '.', '--to', target.url], { env, cwd })
    await target.has(2)
    const { code, out, err } = await running.stop('SIGINT')
    expect({ code, out: tidy(out), err }).toEqual({
      code: 130,
      out: 'ok   a.json  200  Nms\n',
      err: '1 sent\nerror: Interrupted\n',
    })
    expect(target.received).toHaveLength(2)
  })

  describe('a fixture that is wrong', () => {
    const WRONG = '{"relay":1,\n}'
    const WHERE = 'e.json, line 2: not JSON'
    /** A quarter of what is checked before the first is sent. */
    const LARGE = fixture({ body: 'x'.repeat(2_097_152) })
    const FIRST = { 'a.json': LARGE, 'b.json': LARGE, 'c.json': LARGE, 'd.json': LARGE }

    async function replay(files: Readonly<Record<string, Fixture | string>>, ...flags: string[]) {
      await using target = await receiver()
      const argv = ['replay', '.', '--to', target.url, ...flags]
      const { code, out, err } = await run(argv, { env, cwd: folder(files) })
      return { code, lines: out.split('\n').length - 1, received: target.received.length, err }
    }

    it('sends nothing when it is among the first, and is named after what came before it was sent', async () => {
      const none = { code: 2, lines: 0, received: 0 }
      const among = await replay({ 'a.json': LARGE, 'b.json': LARGE, 'e.json': WRONG })
      expect(among).toEqual({ ...none, err: expect.stringContaining(WHERE) })
      const after = await replay({ ...FIRST, 'e.json': WRONG, 'f.json': LARGE })
      const err = expect.stringMatching(new RegExp(`^4 sent\nerror: .*${WHERE}`))
      expect(after).toEqual({ code: 2, lines: 4, received: 4, err })
      const wrong = fixture({ body: '[1]', headers: {} })
      const alone = await replay({ 'a.json': wrong }, '--set', 'a.b=1')
      expect(alone).toEqual({ ...none, err: expect.stringMatching(/^error: a\.json/) })
    })
  })
})

describe('relay trigger --print', () => {
  const ALL = { github: GITHUB_TRIGGERS, gitea: GITEA_TRIGGERS }
  it.each(Object.entries(ALL))(
    '%s: all are fixtures, and genuine to relay and to others',
    async (provider, all) => {
      // Each is a process of its own in a built run, for which some are enough.
      const triggers = BUILT ? all.filter((_, i) => i % 4 === 0) : all
      const cwd = emptyFolder()
      const print = async (trigger: string): Promise<void> => {
        const argv = ['trigger', trigger, '--print', '--provider', provider]
        const { code, out, err } = await run(argv, { env })
        expect({ trigger, code, err }).toEqual({ trigger, code: 0, err: '' })
        writeFileSync(path.join(cwd, `${trigger}.json`), out)
      }
      for (const trigger of triggers) await print(trigger)
      const fixtures = await loadFixtures(cwd)
      const events = fixtures.map(({ fixture: { event, body = '' } }) => [event, JSON.parse(body).action])
      expect(events).toEqual(
        triggers.toSorted().map((trigger) => [...trigger.split('.'), undefined].slice(0, 2)),
      )
      expect((await run(['verify', '.'], { env, cwd })).code).toBe(0)
      const webhooks = new Webhooks({ secret: SECRET })
      for (const { fixture } of fixtures) {
        const signature = String(fixture.headers['X-Hub-Signature-256'])
        expect(await webhooks.verify(fixture.body ?? '', signature)).toBe(true)
      }
    },
    60_000,
  )
})

describe('relay trigger', () => {
  it('prints a sentence on a terminal: the answer, and the entry or the address', async () => {
    await using here = await place({ host: 'none' })
    await here.serve()
    await here.run('trigger', 'push')
    const shown = async (...argv: string[]): Promise<string> => {
      const { out } = await here.runWith({ terminal: {} }, 'trigger', ...argv, '--color', 'never')
      return out.replace(/\b[\d.]+m?s\b/, 'TIME')
    }
    expect(await shown('issues.opened')).toBe('Sent issues.opened: answered 200 in TIME, entry #2\n')
    // Another program finds it by the same number, also where relay has had it for long.
    const numbers = async (...argv: string[]): Promise<unknown[]> =>
      objects((await here.run(...argv, '--json')).out).map(({ n }) => n)
    expect(await numbers('trigger', 'ping')).toEqual([3])
    expect(await numbers('replay', '1', '2', '--keep-id')).toEqual([1, 2])
    await using target = await receiver(202)
    expect(await numbers('trigger', 'push', '--to', target.url)).toEqual([null])
    const by = `Sent push: answered 202 in TIME, by ${target.url}\n`
    expect(await shown('push', '--to', target.url)).toBe(by)
    expect(await shown('push', '--tamper', 'signature', '--expect', '2xx')).toMatch(
      /^FAIL push {2}401 {2}TIME {2}expected 2xx/,
    )
  })

  it('warns of a field that the payload lacks, with the nearest, and adds it', async () => {
    await using here = await place({ host: 'none' })
    const print = (...set: string[]) =>
      here.run('trigger', 'issues.opened', '--print', ...set.flatMap((each) => ['--set', each]))
    const { code, out, err } = await print('$.isue.title=x', 'payload.issue.number=7', 'isue.title=y')
    expect([code, err]).toEqual([
      0,
      `warning: --set: the payload has no isue.title (did you mean issue.title?). It is added
--set also changed ${['url', 'labels_url', 'comments_url', 'events_url', 'html_url', 'reactions.url'].map((each) => `issue.${each}`).join(', ')}
`,
    ])
    const { body, payload = JSON.parse(body) } = JSON.parse(out)
    expect(payload).toMatchObject({ isue: { title: 'y' }, issue: { number: 7 } })
  })

  it('changes fields, spoils signatures, and expects', async () => {
    await using target = await receiver(401)
    const argv = ['trigger', 'issue_comment.created', '--to', target.url, '--set', 'comment.body=/merge']
    expect((await run(argv, { env })).code).toBe(3)
    expect((await run([...argv, '--tamper', 'signature', '--expect', '401'], { env })).code).toBe(0)
    const fits = target.received.map((handed) => {
      expect(JSON.parse(handed.body.toString()).comment.body).toBe('/merge')
      const [signature] = valuesOf(handed, 'x-hub-signature-256')
      return signature === sign(SECRET, handed.body)
    })
    expect(fits).toEqual([true, false])
  })

  it('prints an unsigned fixture where there is no secret, which replay signs', async () => {
    const { code, out } = await run(['trigger', 'push', '--print', '--provider', 'gitea'])
    const fixture: Fixture = JSON.parse(out)
    expect([code, fixture.provider, fixture.headers['X-Hub-Signature-256']]).toEqual([0, 'gitea', undefined])
  })

  it('lists what there is', async () => {
    expect((await run(['trigger', '--list'])).out.trim().split('\n')).toEqual(GITHUB_TRIGGERS)
    const { out } = await run(['trigger', '--list', '--provider', 'gitea', '--json'])
    const listed = GITEA_TRIGGERS.map((trigger) => {
      const [event, action = null] = trigger.split('.')
      return { v: 1, type: 'event', event, action }
    })
    expect(objects(out)).toEqual(listed)
  })
})

/** How many lines there are of each beginning. */
function verdicts({ code, out }: Ran): unknown {
  const lines = out.split('\n').filter(Boolean)
  const count = (start: string): number => lines.filter((line) => line.startsWith(start)).length
  return { code, ok: count('ok   '), failed: count('FAIL ') }
}

/** GitHub's examples, in three layouts. */
function examples(): { readonly event: string; readonly body: string }[] {
  const require = createRequire(import.meta.url)
  const kinds: { name: string; examples: object[] }[] = require('@octokit/webhooks-examples')
  return kinds
    .flatMap(({ name, examples }) => examples.map((payload) => ({ name, payload })))
    .map(({ name, payload }, i) => ({ event: name, body: JSON.stringify(payload, null, i % 3) }))
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
  })
})

/** On its own, with nothing of relay's. */
function signatureFits(request: Received): boolean {
  const [signature = ''] = valuesOf(request, 'x-hub-signature-256')
  const right = Buffer.from(`sha256=${createHmac('sha256', SECRET).update(request.body).digest('hex')}`)
  const given = Buffer.from(signature)
  return given.length === right.length && timingSafeEqual(given, right)
}
