import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Fixture } from 'webhook-relay/testing'
import { SECRET, sign } from '../kit/delivery.js'
import { emptyFolder } from '../kit/folder.js'
import { fill } from '../kit/journal.js'
import { place } from '../kit/place.js'
import { type Received, receiver, valuesOf } from '../kit/receiver.js'
import { type Ran, run, start } from '../kit/run.js'
import { bare, opened } from './example.js'

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
    target.answers(
      202,
      { status: 500, body: '{"error":"no installation"}\n' },
      { status: 302, headers: { location: '/x' } },
    )
    const cwd = folder({ 'c.json': fixture(), 'a.json': fixture(), 'b-long.json': fixture() })
    const { code, out, err } = await run(['replay', '.', '--to', `${target.url}/hook?x=1`], { env, cwd })
    expect({ code, out: tidy(out), err }).toEqual({
      code: 3,
      out: `ok   a.json       202  Nms
FAIL b-long.json  500  Nms  expected 2xx: {"error":"no installation"}
FAIL c.json       302  Nms  expected 2xx
`,
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

  it('changes fields in the style they are written in, and signs that', async () => {
    await using target = await receiver()
    const cwd = folder({
      'a.json': fixture(),
      'gitea.json': readFileSync('fixtures/gitea/push.json', 'utf8'),
    })
    const sets = ['number=7', 'zen=<hi>', 'a.b[0].__proto__={"x":"="}'].flatMap((set) => ['--set', set])
    const argv = ['replay', 'a.json', 'gitea.json', '--to', target.url, ...sets]
    expect((await run(argv, { env, cwd })).code).toBe(0)
    const [github, gitea] = target.received
    expect(github?.body.toString()).toBe(
      '{"action":"opened","number":7,"zen":"<hi>","a":{"b":[{"__proto__":{"x":"="}}]}}\n',
    )
    const { body = '' }: Fixture = JSON.parse(readFileSync('fixtures/gitea/push.json', 'utf8'))
    const payload = { ...JSON.parse(body), number: 7, zen: '<hi>', a: { b: [{ ['__proto__']: { x: '=' } }] } }
    const escaped = (text: string): string => `\\u${text.charCodeAt(0).toString(16).padStart(4, '0')}`
    expect(gitea?.body.toString()).toBe(
      JSON.stringify(payload, null, 2).replace(/[<>&\u2028\u2029]/g, escaped) + /\s*$/.exec(body)?.[0],
    )
    expect(target.received.map((handed) => signedBy(handed, SECRET))).toEqual([true, true])
  })

  it('to the running relay: accepted, refused when tampered with', async () => {
    await using here = await place({ host: 'none' })
    await here.serve()
    const cwd = folder({ 'a.json': fixture() })
    const run = (...argv: string[]): Promise<Ran> => here.runWith({ cwd }, 'replay', ...argv)
    expect(await run('a.json')).toMatchObject({ code: 0, err: '1 sent\n' })
    for (const tamper of ['signature', 'body']) {
      expect(await run('a.json', '--tamper', tamper, '--expect', '401')).toMatchObject({ code: 0 })
      const { code, out } = await run('a.json', '--tamper', tamper)
      expect([code, out]).toEqual([3, expect.stringContaining('expected 2xx: {"error":"Invalid signature"}')])
    }
    expect(tidy((await run('last')).out)).toBe('ok   #1  200  Nms\n')
    expect((await run('--event', 'pull_request.opened', '--last', '2')).code).toBe(0)
    const { out } = await here.run('log', '--json')
    expect(
      out
        .trim()
        .split('\n')
        .map((line): unknown => JSON.parse(line).duplicates),
    ).toEqual([0, 0, 0, 0])
  }, 60_000)

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
    expect(target.received.slice(-1).flatMap((handed) => valuesOf(handed, 'x-github-delivery'))).toEqual([
      'c',
    ])
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
    expect({ ...ran, out: tidy(ran.out) }).toEqual({
      code: 3,
      out: 'FAIL a.json  -  Nms  expected 2xx: connection closed before an answer\n',
      err: 'error: 1 of 1 answers were not as expected\n',
    })
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

    it('sends nothing when it is among the first', async () => {
      expect(await replay({ 'a.json': LARGE, 'b.json': LARGE, 'e.json': WRONG })).toEqual({
        code: 2,
        lines: 0,
        received: 0,
        err: expect.stringContaining(WHERE),
      })
    })

    it('is named after what comes before it was sent', async () => {
      expect(await replay({ ...FIRST, 'e.json': WRONG, 'f.json': LARGE })).toEqual({
        code: 2,
        lines: 4,
        received: 4,
        err: expect.stringMatching(new RegExp(`^4 sent\nerror: .*${WHERE}`)),
      })
    })

    it('is named alone when nothing could be sent', async () => {
      const wrong = fixture({ body: '[1]', headers: {} })
      expect(await replay({ 'a.json': wrong }, '--set', 'a.b=1')).toEqual({
        code: 2,
        lines: 0,
        received: 0,
        err: expect.stringMatching(/^error: a\.json/),
      })
    })
  })

  it.each<[string, number, RegExp]>([
    ['replay', 2, /Nothing to replay/],
    ['replay a.json', 1, /relay serve, or name an address with --to/],
    ['replay nothing.json --to http://localhost:1', 2, /nothing\.json: no such file/],
    ['replay a.json --to example', 2, /--to: must be an absolute/],
    ['replay a.json --to http://localhost:1 --expect 20', 2, /--expect: must be a status/],
    ['replay a.json --to http://localhost:1 --set x', 2, /--set: must be path=value/],
    [
      'replay a.json --to http://localhost:1 --set action.x=1',
      2,
      /a\.json: Cannot set a field: action is neither/,
    ],
    ['replay a.json --to http://localhost:1 --last 3', 2, /--last: selects entries/],
    ['replay a.json --to http://localhost:1 --secret-env NONE', 2, /--secret-env: NONE is not set/],
    ['replay last --to http://localhost:1', 6, /no journal/],
    ['replay a.json --to http://127.0.0.1:1', 3, /1 of 1 answers were not/],
  ])('%s: %i', async (line, code, err) => {
    const ran = await run(line.split(' '), { env, cwd: folder({ 'a.json': fixture() }) })
    expect(ran).toMatchObject({ code, err: expect.stringMatching(err) })
  })
})
