import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { RelayError } from '../../../../src/base/errors.js'
import { CHECKED_AHEAD } from '../../../../src/old/commands/replay/select-items.js'
import { type Fixture, fixtureText } from '../../../../src/fixtures/fixture.js'
import { sign } from '../../../helpers/sign.js'
import { emptyFolder } from '../../../helpers/context.js'
import { type Answer, startTarget, valuesOf } from '../../../helpers/target.js'
import { shell } from '../../rig.js'

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

describe('relay replay --junit, --times and --concurrency', () => {
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
})
