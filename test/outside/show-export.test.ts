import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Fixture } from 'webhook-relay/testing'
import { emptyFolder } from '../kit/folder.js'
import { fill } from '../kit/journal.js'
import { fails, prints } from '../kit/run.js'
import { bare, example, opened, URL_TARGET } from './example.js'
import { json, notes, shared } from './fixture.js'

const here = shared(example)

/** The bytes of a filled delivery, which are no text. */
const BYTES = Buffer.from([0, 255, 13, 10, 0xef, 0xbb, 0xbf])
const OPENED = String(opened('a').body)

const FIRST_SHOWN = `#1  pull_request.opened  octo/demo#7

received    2023-11-15 03:43:20
from        github, hook 42, delivery a
verified    with the current webhook secret
duplicates  0

forwarded to no target: no route matched it when it came

headers
  Content-Type: application/json
  X-GitHub-Event: pull_request

body (97 bytes): JSON
  {
    "action": "opened",
    "big": 12345678901234567890,
    "labels": [],
    "repository": {
      "full_name": "octo/demo"
    }
  }
`

const THIRD = String.raw`#3  issues.closed  octo/demo#12

received    2023-11-15 03:45:20
from        github, hook 42, delivery c
verified    with the current webhook secret
duplicates  0

localhost:3000  ✗ failed: answered 404  http://localhost:3000/hook
  2023-11-15 03:45:20  unreachable 38ms  connection refused  3 times
  2023-11-15 03:46:20  404 12.3s
    no\u{1b}[2J such
    thing

headers
  X-GitHub-Event: push
  X-Twice: one
  x-twice: two é

body (7 bytes): not text; relay show 3 --body prints it
`

const FIFTH_TARGETS = String.raw`localhost:3000  ◦ waiting: no relay runs  http://localhost:3000/hook

deploy.sh  ✗ failed: exit code 1  push=exec:./deploy.sh
  2023-11-15 03:43:20  exit 1 38ms
    �
    \u{0}{

example.com  ◦ waiting: no relay runs  issues=https://***@example.com/x?…

`

describe('relay show', () => {
  it('shows headers in order, the body as it was written but indented, and no targets', async () => {
    for (const name of ['1', '#1']) expect(await here.run('show', name)).toEqual(prints(FIRST_SHOWN))
  })

  it('shows every attempt, and what the target answered, so that it cannot rewrite the terminal', async () => {
    expect(await here.run('show', '3')).toEqual(prints(THIRD))
  })

  it('shows the last entry, the status at each target, and none of their secrets', async () => {
    const { code, out, err } = await here.run('show', 'last')
    expect({ code, err }).toEqual({ code: 0, err: '' })
    expect(out.split('\n\n')[0]).toBe(String.raw`#5  x\u{1b}[2J  octo/other#7`)
    expect(out).toContain('verified    with the previous webhook secret\n')
    expect(out.slice(out.indexOf('localhost'), out.indexOf('headers'))).toBe(FIFTH_TARGETS)
  })

  it('says on a terminal when it came, in everyday words, and the day of an attempt only where it is another one', async () => {
    const { out } = await here.runWith({ terminal: {}, env: { NO_COLOR: '1' } }, 'show', '5')
    expect(out).toMatch(/^received {4}15 Nov 2023 03:47:20, \d+ days ago$/m)
    expect(out).toMatch(/^ {2}03:43:20 {2}exit 1 38ms$/m)
  })

  it('marks an event that the payload does not prove', async () => {
    await using here = await bare()
    const restored = { how: 'compact', sha256: 'x'.repeat(43), unproved: true } as const
    await fill(here, [opened('t', { restored })])
    const { out } = await here.run('show', '1')
    expect(out).toContain('\nrestored    compact, after a tunnel changed the body\nunproved    the event: ')
    for (const argv of [['show', '1'], ['log']])
      expect(await json(here.run(...argv, '--json'))).toMatchObject({ restored: 'compact', unproved: true })
  })

  it('decodes a form', async () => {
    await using here = await bare()
    const payload = '{"zen":"a\u009bb","n":[1]}'
    const form = `payload=${encodeURIComponent(payload)}`
    const type = 'application/x-www-form-urlencoded; charset=utf-8'
    await fill(here, [opened('f', { headers: [['content-type', type]], body: form })])
    const { out } = await here.run('show', '1')
    expect(out.slice(out.indexOf('body'))).toBe(String.raw`body (60 bytes): JSON in a form
  {
    "zen": "a\u{9b}b",
    "n": [
      1
    ]
  }
`)
    const { payload: value, body } = await json(here.run('show', '1', '--json'))
    expect({ value, body }).toEqual({ value: JSON.parse(payload), body: form })
  })

  it('gives the exact bytes, and nothing else, with --body', async () => {
    const wrapper = ['sh', '-c', '"$@" > body', 'sh']
    const { cwd, ended } = here.startWith({ wrapper }, 'show', '2', '--body', '--color', 'always')
    expect(await ended).toMatchObject({ code: 0, err: '' })
    expect(readFileSync(path.join(cwd, 'body'))).toEqual(BYTES)
  })

  it('prints no bytes where a program asks for JSON', async () => {
    const { code, out } = await here.run('show', '2', '--body', '--json')
    expect([code, out]).toEqual([2, ''])
  })

  it('gives a terminal no bytes that rewrite it with --body', async () => {
    const ran = await here.runWith({ terminal: {} }, 'show', '2', '--body', '--color', 'always')
    expect(ran).toEqual(prints('\\u{0}\ufffd\\u{d}\n\ufeff'))
  })

  it('shows the start of a long answer', async () => {
    await using here = await bare()
    const answer = `${'x'.repeat(300)}\n${'line\n'.repeat(20)}`
    const retried = { status: 500, outcome: 'retry', answer, count: 2 } as const
    const failed = { status: 'failed', reason: 'answered 500 five times', attempts: [retried] } as const
    await fill(here, [opened('a', { forwards: { [URL_TARGET]: failed } })])
    const { out } = await here.run('show', '1')
    expect(out.slice(out.indexOf('localhost'), out.indexOf('headers')).split('\n')).toEqual([
      'localhost:3000  ✗ failed: answered 500 five times  http://localhost:3000/hook',
      '  2023-11-15 03:43:20  500 38ms  2 times',
      `    ${'x'.repeat(200)}…`,
      ...Array.from({ length: 9 }, () => '    line'),
      '    …',
      '',
      '',
    ])
  })

  it('prints everything as one JSON document', async () => {
    const { code, out, err } = await here.run('show', '3', '--json')
    expect({ code, err, lines: out.split('\n').length }).toEqual({ code: 0, err: '', lines: 2 })
    const target = 'http://localhost:3000/hook'
    const refused = { outcome: 'refused', status: 404, ms: 12_345 }
    const time = '2023-11-14T22:15:20.000Z'
    const from = { provider: 'github', source: 'github', scheme: 'github' }
    const of = { ...from, delivery: 'c', event: 'issues', action: 'closed', repo: 'octo/demo' }
    const state = { state: 'failed', reason: 'answered 404', since: '2023-11-14T22:13:20.000Z', attempts: 4 }
    const down = { outcome: 'unreachable', status: null, ms: 38, error: 'connection refused', count: 3 }
    const last = { ...refused, error: null, count: 1, headers: [], answer: 'no\u001b[2J such\r\nthing\n' }
    expect(JSON.parse(out)).toEqual({
      v: 1,
      type: 'delivery',
      n: 3,
      time,
      ...of,
      number: 12,
      ref: null,
      query: null,
      verifiedBy: 'current',
      restored: null,
      unproved: false,
      editedFrom: null,
      duplicates: 0,
      ignoredBy: null,
      size: 7,
      targets: [{ target, ...state, waitsFor: null, ...refused }],
      hook: '42',
      headers: [
        { name: 'X-GitHub-Event', value: 'push' },
        { name: 'X-Twice', value: 'one' },
        { name: 'x-twice', value: 'two é' },
      ],
      bodyBase64: BYTES.toString('base64'),
      payload: null,
      attempts: [
        { time, target, ...down, headers: [], answer: '' },
        { time: '2023-11-14T22:16:20.000Z', target, ...last },
      ],
    })
    const [first, fifth] = await Promise.all(['1', '5'].map((n) => json(here.run('show', n, '--json'))))
    expect([first.body, first.payload, first.bodyBase64]).toEqual([OPENED, JSON.parse(OPENED), undefined])
    expect(fifth.attempts).toMatchObject([{ target: 'push=exec:./deploy.sh', answerBase64: '/woAew==' }])
    expect(JSON.stringify(fifth)).not.toContain('canary')
  })

  it('says which entries there are, exit 6', async () => {
    const range = 'Its entries are #1 to #5'
    expect(await here.run('show', '6')).toEqual(fails(6, `The journal has no entry #6. ${range}`))
    await fill(here, [], 'empty')
    expect(await here.run('log', '--profile', 'empty')).toEqual(fails(6, 'The journal is empty'))
    for (const n of ['1', 'last'])
      expect(await here.run('show', n, '--profile', 'empty')).toEqual(fails(6, 'The journal is empty'))
  })
})

const FIRST = `${JSON.stringify(
  {
    relay: 1,
    provider: 'github',
    event: 'pull_request',
    delivery: 'a',
    headers: { 'Content-Type': 'application/json', 'X-GitHub-Event': 'pull_request' },
    body: OPENED,
  } satisfies Fixture,
  null,
  2,
)}\n`

/** The fixture of what is filled in without more, but for its delivery id. */
const FILLED = {
  relay: 1,
  provider: 'github',
  event: 'push',
  headers: { 'X-GitHub-Event': 'push', 'X-Twice': ['one', 'two é'] },
  bodyBase64: BYTES.toString('base64'),
}

describe('relay export', () => {
  it('prints the fixture, also under --json', async () => {
    for (const flags of [[], ['--out', '-'], ['--json']])
      expect(await here.run('export', '1', ...flags)).toEqual(prints(FIRST))
    expect(JSON.parse((await here.run('export', '2')).out)).toEqual({ ...FILLED, delivery: 'b' })
  })

  it('prints the payload readably with --pretty, where that keeps every byte', async () => {
    await using here = await example()
    const body = '{"action":"opened"}'
    await fill(here, [{ id: 'pretty', body }])
    const { code, out, err } = await here.run('export', 'last', '--pretty')
    const { bodyBase64: _, ...others } = FILLED
    const fixture = { ...others, delivery: 'pretty', payload: { action: 'opened' }, encoding: 'compact' }
    expect({ code, err, fixture: JSON.parse(out) }).toEqual({ code: 0, err: '', fixture })
    const exact = '#1 has its exact body: writing its JSON again would change bytes, and its signature\n'
    expect(await here.run('export', '1', '--pretty')).toEqual({ ...prints(FIRST), err: exact })
  })

  it('writes a file, and overwrites one only with --force', async () => {
    const cwd = emptyFolder()
    const file = path.join(cwd, 'opened.json')
    const run = (...flags: string[]) => here.runWith({ cwd }, 'export', ...flags, '--out', 'opened.json')
    expect(await run('1')).toEqual(notes('#1 is in opened.json\n'))
    expect(readFileSync(file, 'utf8')).toBe(FIRST)

    writeFileSync(file, 'mine')
    expect(await run('1')).toEqual(fails(2, '--out: opened.json exists. Overwrite it with --force'))
    expect(readFileSync(file, 'utf8')).toBe('mine')

    expect(await run('1', '--force', '--json')).toEqual(prints('{"v":1,"n":1,"file":"opened.json"}\n'))
    expect(readFileSync(file, 'utf8')).toBe(FIRST)
  })

  it('says why it cannot', async () => {
    const cwd = emptyFolder()
    const run = (...argv: string[]) => here.runWith({ cwd }, 'export', ...argv)
    const where = '--out: no/where.json cannot be written (ENOENT)'
    expect(await run('1', '--out', 'no/where.json')).toEqual(fails(2, where))
    const none = 'The journal has no entry #7. Its entries are #1 to #5'
    expect(await run('7', '--out', 'x.json')).toEqual(fails(6, none))
    expect(existsSync(path.join(cwd, 'x.json'))).toBe(false)
  })

  it('writes several to a folder, which it makes, with a file for each', async () => {
    const cwd = emptyFolder()
    const run = (...argv: string[]) => here.runWith({ cwd }, 'export', ...argv)
    expect(await run('1', '2', 'last', '--out', 'all')).toEqual(
      notes('#1 is in all/1-pull_request.opened.json\n#2 is in all/2-push.json\n#5 is in all/5-x_2J.json\n'),
    )
    expect(readFileSync(path.join(cwd, 'all/1-pull_request.opened.json'), 'utf8')).toBe(FIRST)
    expect(readdirSync(path.join(cwd, 'all'))).toHaveLength(3)
    const exists = '--out: all/1-pull_request.opened.json exists. Overwrite it with --force'
    expect(await run('1', '--out', 'all')).toEqual(fails(2, exists))
    const made = '{"v":1,"n":1,"file":"all/1-pull_request.opened.json"}\n'
    expect(await run('1', '--out', 'all/', '--force', '--json')).toEqual(prints(made))
    expect(await run('1', '--out', 'one/')).toEqual(notes('#1 is in one/1-pull_request.opened.json\n'))
  })

  it('needs a folder for several', async () => {
    const cwd = emptyFolder()
    writeFileSync(path.join(cwd, 'file'), '')
    const run = (...argv: string[]) => here.runWith({ cwd }, 'export', '1', '2', ...argv)
    const needs = 'Several entries need a folder, with a file for each: --out <folder>'
    for (const flags of [[], ['--out', '-']]) expect(await run(...flags)).toEqual(fails(2, needs))
    expect(await run('--out', 'file')).toEqual(fails(2, '--out: file is no folder'))
    expect(await run('--out', 'no/where')).toEqual(fails(2, '--out: no/where cannot be made (ENOENT)'))
  })

  it('gives a file no name from outside', async () => {
    await using here = await bare()
    const cwd = emptyFolder()
    await fill(here, [opened('a', { event: '../../up and away', action: null })])
    const { err } = await here.runWith({ cwd }, 'export', '1', '--out', '.')
    expect(err).toContain('#1 is in 1-.._.._up_and_away.json')
    expect(readdirSync(cwd)).toEqual(['1-.._.._up_and_away.json'])
  })
})
