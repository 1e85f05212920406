import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { RelayError } from '../../../../src/base/errors.js'
import { CHECKED_AHEAD } from '../../../../src/cli/commands/replay/select-items.js'
import { type Fixture, fixtureText } from '../../../../src/fixtures/fixture.js'
import { sign, verify } from '../../../helpers/sign.js'
import { Secret } from '../../../../src/base/secret.js'
import { emptyFolder } from '../../../helpers/context.js'
import { type Answer, startTarget, valuesOf, type Handed } from '../../../helpers/target.js'
import { fill, opened } from '../../journal-rig.js'
import { piped, shell, startServed } from '../../rig.js'

const SECRET = 'replay-secret'
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
      'X-Hub-Signature-256': sign(SECRET, Buffer.from(BODY)),
    },
    body: BODY,
    ...more,
  }
}

/** A folder with these fixtures. */
function folder(files: Readonly<Record<string, Fixture | string>>): string {
  const cwd = emptyFolder()
  for (const [name, content] of Object.entries(files))
    writeFileSync(path.join(cwd, name), typeof content === 'string' ? content : fixtureText(content))
  return cwd
}

const signedBy = (handed: Handed, secret: string) =>
  verify(valuesOf(handed, 'x-hub-signature-256')[0], handed.body, { current: new Secret(secret) })

const tidy = (out: string): string => out.replaceAll(/\d+ms/g, 'Nms')

describe('relay replay', () => {
  it('sends files in order, prints a line for each, and ends with 3 when an answer was not as expected', async () => {
    await using target = await startTarget()
    target.answers(
      202,
      { status: 500, body: '{"error":"no installation"}\n' },
      { status: 302, headers: { location: '/x' } },
    )
    const cwd = folder({ 'c.json': fixture(), 'a.json': fixture(), 'b-long.json': fixture() })
    const { code, out, err } = await shell(env).run(['replay', '.', '--to', `${target.url}/hook?x=1`], {
      cwd,
    })
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
    await using target = await startTarget()
    const cwd = folder({ 'a.json': fixture() })
    const run = async (...flags: string[]) =>
      (await shell(env).run(['replay', 'a.json', '--to', target.url, ...flags], { cwd })).code
    expect([await run(), await run('--keep-id')]).toEqual([0, 0])
    const [fresh, kept] = target.received
    const sent = (handed?: Handed) =>
      handed?.headers.filter(([name]) => !/^(?:host|connection|content-length)$/i.test(name))
    expect(sent(kept)).toEqual(Object.entries(fixture().headers))
    expect(sent(fresh)?.map(([name]) => name)).toEqual(Object.keys(fixture().headers))
    expect(fresh && valuesOf(fresh, 'x-github-delivery')[0]).toMatch(/^[0-9a-f-]{36}$/)
    expect([fresh?.body.toString(), kept?.body.toString()]).toEqual([BODY, BODY])
  })

  it('signs again with another secret, and as Gitea does for Gitea', async () => {
    await using target = await startTarget()
    const gitea = readFileSync('fixtures/gitea/push.newest.json', 'utf8')
    const cwd = folder({ 'a.json': fixture(), 'gitea.json': gitea })
    const argv = ['replay', 'a.json', 'gitea.json', '--to', target.url, '--secret-env', 'OTHER']
    expect((await shell({ ...env, OTHER: 'other' }).run(argv, { cwd })).code).toBe(0)
    const [github, second] = target.received
    expect(github && signedBy(github, 'other')).toBe('current')
    expect(second && signedBy(second, 'other')).toBe('current')
    expect(second && valuesOf(second, 'x-gitea-signature')).toEqual([
      sign('other', second?.body ?? Buffer.of()).slice(7),
    ])
    const ids = second && ['x-gitea-delivery', 'x-github-delivery'].map((name) => valuesOf(second, name)[0])
    expect(new Set(ids).size).toBe(1)
  })

  it('changes fields in the style they are written in, and signs that', async () => {
    await using target = await startTarget()
    const cwd = folder({
      'a.json': fixture(),
      'gitea.json': readFileSync('fixtures/gitea/push.json', 'utf8'),
    })
    const sets = ['number=7', 'zen=<hi>', 'a.b[0].__proto__={"x":"="}'].flatMap((set) => ['--set', set])
    const argv = ['replay', 'a.json', 'gitea.json', '--to', target.url, ...sets]
    expect((await shell(env).run(argv, { cwd })).code).toBe(0)
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
    expect(target.received.map((handed) => signedBy(handed, SECRET))).toEqual(['current', 'current'])
  })

  it('to the running relay: accepted, refused when tampered with', async () => {
    await using served = await startServed()
    const cwd = folder({ 'a.json': fixture() })
    const run = async (...argv: string[]) =>
      served.shell.run(['replay', ...argv], { cwd, env: { RELAY_WEBHOOK_SECRET: 'secret' } })
    expect(await run('a.json')).toMatchObject({ code: 0, err: '1 sent\n' })
    for (const tamper of ['signature', 'body']) {
      expect(await run('a.json', '--tamper', tamper, '--expect', '401')).toMatchObject({ code: 0 })
      const { code, out } = await run('a.json', '--tamper', tamper)
      expect([code, out]).toEqual([3, expect.stringContaining('expected 2xx: {"error":"Invalid signature"}')])
    }
    expect(tidy((await run('last')).out)).toBe('ok   #1  200  Nms\n')
    expect((await run('--event', 'pull_request.opened', '--last', '2')).code).toBe(0)
    const { out } = await served.shell.run(['log', '--json'])
    expect(
      out
        .trim()
        .split('\n')
        .map((line): unknown => JSON.parse(line).duplicates),
    ).toEqual([0, 0, 0, 0])
  })

  it('selects in the journal, oldest first, and keeps the ids of those that failed', async () => {
    await using target = await startTarget()
    const here = shell(env)
    await fill(
      here,
      async (journal) => {
        await journal.append(opened('a'))
        await journal.append(opened('b', { event: 'push', action: null }))
        await journal.append(opened('c'))
        const failed = { status: 'failed', tries: 1, since: 0, reason: 'answered 500' } as const
        await journal.finish(3, 'x', failed)
      },
      ['x'],
    )
    const run = async (...argv: string[]) => {
      const { code, out, err } = await here.run(['replay', ...argv, '--to', target.url, '--json'])
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
    await using target = await startTarget()
    const argv = ['replay', '-', '--event', 'ping', '--to', target.url]
    expect((await shell(env).run(argv, { stdin: piped('{"zen": 1 }') })).code).toBe(0)
    const [handed] = target.received
    expect(handed?.body.toString()).toBe('{"zen": 1 }')
    expect(handed && valuesOf(handed, 'x-github-event')).toEqual(['ping'])
    expect(handed && signedBy(handed, SECRET)).toBe('current')
  })

  it('names fixtures relative to the working folder, wherever they are', async () => {
    await using target = await startTarget()
    const cwd = emptyFolder()
    const elsewhere = folder({ 'a.json': fixture() })
    const argv = ['replay', path.join(elsewhere, 'a.json'), '--to', target.url, '--junit', 'out.xml']
    expect((await shell(env).run(argv, { cwd })).code).toBe(0)
    const name = path.join('..', path.basename(elsewhere), 'a.json')
    expect(readFileSync(path.join(cwd, 'out.xml'), 'utf8')).toContain(`<testcase name="${name}"`)
  })

  it('stops at the first failure with --stop, and writes JUnit XML', async () => {
    await using target = await startTarget(() => 'reset')
    const cwd = folder({ 'a"<.json': fixture(), 'b.json': fixture() })
    const argv = ['replay', '.', '--to', target.url, '--stop', '--junit', 'out.xml']
    expect((await shell(env).run(argv, { cwd })).code).toBe(3)
    expect(readFileSync(path.join(cwd, 'out.xml'), 'utf8').replaceAll(/time="[\d.]+"/g, 'time="T"'))
      .toBe(`<?xml version="1.0" encoding="UTF-8"?>
<testsuites tests="1" failures="1" errors="0" time="T">
  <testsuite name="relay" tests="1" failures="1" errors="0" time="T">
    <testcase name="a&#34;&#60;.json" classname="pull_request" time="T">
      <failure message="expected 2xx, got no answer: connection closed before an answer"/>
    </testcase>
  </testsuite>
</testsuites>
`)
  })

  it('sends what comes before a fixture that cannot be edited, however many are sent at once', async () => {
    for (const concurrency of ['1', '4']) {
      await using target = await startTarget()
      const bad = fixture({
        body: '[1]',
        headers: { 'x-hub-signature-256': sign(SECRET, Buffer.from('[1]')) },
      })
      const cwd = folder({ 'a.json': fixture(), 'b.json': fixture(), 'c.json': bad, 'd.json': fixture() })
      const argv = ['replay', '.', '--to', target.url, '--set', 'a.b=1', '--concurrency', concurrency]
      const { code, err } = await shell(env).run(argv, { cwd })
      expect([code, err]).toEqual([2, expect.stringContaining('c.json')])
      expect(target.received).toHaveLength(2)
    }
  })

  describe('a fixture that is wrong', () => {
    const WRONG = '{"relay":1,\n}'
    const WHERE = 'e.json, line 2: not JSON'
    const LARGE = fixture({ body: 'x'.repeat(CHECKED_AHEAD / 4) })
    /** As many as are checked ahead. */
    const FIRST = { 'a.json': LARGE, 'b.json': LARGE, 'c.json': LARGE, 'd.json': LARGE }

    async function replay(files: Readonly<Record<string, Fixture | string>>, ...flags: string[]) {
      await using target = await startTarget()
      const cwd = folder(files)
      const argv = ['replay', '.', '--to', target.url, '--junit', 'out.xml', ...flags]
      const { code, out, err } = await shell(env).run(argv, { cwd })
      const file = path.join(cwd, 'out.xml')
      const junit = existsSync(file) && /<testsuites .*errors="\d+"/.exec(readFileSync(file, 'utf8'))?.[0]
      return { code, lines: out.split('\n').length - 1, received: target.received.length, err, junit }
    }

    it('sends nothing, and writes no report, when it is among the first', async () => {
      expect(await replay({ 'a.json': LARGE, 'b.json': LARGE, 'e.json': WRONG })).toEqual({
        code: 2,
        lines: 0,
        received: 0,
        err: expect.stringContaining(WHERE),
        junit: false,
      })
    })

    it.each(['1', '4', '8'])('sends and reports what comes before it, %s at once', async (concurrency) => {
      const files = { ...FIRST, 'e.json': WRONG, 'f.json': LARGE }
      expect(await replay(files, '--concurrency', concurrency)).toEqual({
        code: 2,
        lines: 4,
        received: 4,
        err: expect.stringMatching(new RegExp(`^4 sent\nerror: .*${WHERE}`)),
        junit: '<testsuites tests="5" failures="0" errors="1"',
      })
    })

    it('names the first of two, though the other was read before that was found', async () => {
      const cannotBeEdited = fixture({ body: '[1]', headers: {} })
      const files = { ...FIRST, 'd2.json': cannotBeEdited, 'e.json': WRONG }
      const { err, received } = await replay(
        { ...files, ...Object.fromEntries(Object.keys(FIRST).map((name) => [name, editable()])) },
        '--set',
        'a.b=1',
        '--concurrency',
        '8',
      )
      expect([received, err]).toEqual([4, expect.stringContaining('d2.json')])
    })

    it('prints no totals when nothing could be sent', async () => {
      const cwd = folder({ 'a.json': fixture({ body: '[1]', headers: {} }) })
      const argv = [
        'replay',
        'a.json',
        '--to',
        'http://localhost:9',
        '--set',
        'a.b=1',
        '--times',
        '3',
        '--json',
      ]
      const { code, out } = await shell(env).run(argv, { cwd })
      expect([code, out]).toEqual([2, ''])
    })

    it('prints nothing when nothing could be sent', async () => {
      const { code, err, junit } = await replay(
        { 'a.json': fixture({ body: '[1]', headers: {} }) },
        '--set',
        'a.b=1',
      )
      expect({ code, err, junit }).toEqual({
        code: 2,
        err: expect.stringMatching(/^error: a\.json/),
        junit: false,
      })
    })

    it('is named even when the report cannot be written', async () => {
      const { err } = await replay({ ...FIRST, 'e.json': WRONG }, '--junit', 'none/out.xml')
      expect(err).toMatch(
        new RegExp(`^4 sent\n--junit: none/out.xml cannot be written \\(ENOENT\\)\nerror: .*${WHERE}`),
      )
    })

    function editable(): Fixture {
      return fixture({ body: `{"a":{"b":"${'x'.repeat(CHECKED_AHEAD / 4)}"}}`, headers: {} })
    }
  })

  it('prints rate and latency of a load run, not each request', async () => {
    await using target = await startTarget()
    target.answers(500)
    const cwd = folder({ 'a.json': fixture() })
    const argv = ['replay', 'a.json', '--to', target.url, '--times', '300', '--concurrency', '8']
    const { code, out, err } = await shell(env).run(argv, { cwd })
    expect(code).toBe(3)
    expect(out.replaceAll(/\d+(?:\.\d+)?/g, 'N')).toBe(
      'requests  N in N s, N a second\nlatency   pN Nms  pN Nms  pN Nms  max Nms\nanswers   N: N  N: N\n',
    )
    expect(out).toContain('200: 299')
    expect(err).toBe('FAIL a.json  500  expected 2xx\nerror: 1 of 300 answers were not as expected\n')
    expect(target.connections).toBeLessThanOrEqual(8)
    expect(new Set(target.received.map((handed) => valuesOf(handed, 'x-github-delivery')[0])).size).toBe(300)
  })

  it('warns of nothing at its most concurrent, and ends when it is interrupted', async () => {
    const warnings: unknown[] = []
    const warned = (warning: unknown): void => void warnings.push(warning)
    process.on('warning', warned)
    await using target = await startTarget((): Answer => 'hang')
    const cwd = folder({ 'a.json': fixture() })
    const abort = new AbortController()
    const argv = ['replay', 'a.json', '--to', target.url, '--times', '1000', '--concurrency', '64']
    const running = shell(env).run(argv, { cwd, signal: abort.signal })
    await target.has(64)
    abort.abort(new RelayError('cancelled', 'Interrupted'))
    expect(await running).toMatchObject({ code: 130, out: '' })
    process.off('warning', warned)
    expect([target.received.length, warnings]).toEqual([64, []])
  })

  it('reports a load run as far as it went, when it is interrupted', async () => {
    let received = 0
    await using target = await startTarget((): Answer => (++received > 5 ? 'hang' : 200))
    const abort = new AbortController()
    const argv = ['replay', 'a.json', '--to', target.url, '--times', '1000', '--json']
    const cwd = folder({ 'a.json': fixture() })
    const running = shell(env).run(argv, { cwd, signal: abort.signal })
    await target.has(6)
    abort.abort(new RelayError('cancelled', 'Interrupted'))
    const { code, out } = await running
    expect([code, JSON.parse(out)]).toMatchObject([130, { requests: 5, failed: 0, answers: { 200: 5 } }])
  })

  it('shows how far it is on a terminal, and leaves nothing there', async () => {
    await using target = await startTarget()
    const cwd = folder({ 'a.json': fixture() })
    let err = ''
    const stderr = { isTTY: true, columns: 80, write: (text: string | Uint8Array) => (err += String(text)) }
    const argv = ['replay', 'a.json', '--to', target.url, '--times', '60']
    expect((await shell(env).run(argv, { cwd, stderr })).code).toBe(0)
    expect(err).toContain('0/60')
    expect(err.endsWith('\u001b[1G\u001b[2K')).toBe(true)
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
    ['replay a.json --to http://localhost:1 --times 0', 2, /--times: must be/],
    ['replay a.json --to http://localhost:1 --last 3', 2, /--last: selects entries/],
    ['replay a.json --to http://localhost:1 --secret-env NONE', 2, /--secret-env: NONE is not set/],
    ['replay last --to http://localhost:1', 6, /no journal/],
    ['replay a.json --to http://127.0.0.1:1', 3, /1 of 1 answers were not/],
  ])('%s: %i', async (line, code, err) => {
    const ran = await shell(env).run(line.split(' '), { cwd: folder({ 'a.json': fixture() }) })
    expect(ran).toMatchObject({ code, err: expect.stringMatching(err) })
  })
})
