import { describe, expect, it } from 'vitest'
import { attempt, delivery, failed, NOW } from '../../journal/rig.js'
import { exampleShell, fill, opened, URL_TARGET } from '../journal-rig.js'
import { shell } from '../rig.js'

const FIRST = `#1  pull_request.opened  octo/demo#7

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

const FIFTH_TARGETS = String.raw`localhost:3000  ◦ waiting  http://localhost:3000/hook

deploy.sh  ✗ failed: exit code 1  push=exec:./deploy.sh
  2023-11-15 03:43:20  exit 1 38ms
    �
    \u{0}{

example.com  ◦ waiting  issues=https://***@example.com/x?…

`

describe('relay show', () => {
  it('shows headers in order, the body as it was written but indented, and no targets', async () => {
    const here = await exampleShell()
    for (const name of ['1', '#1'])
      expect(await here.run(['show', name])).toEqual({ code: 0, out: FIRST, err: '' })
  })

  it('shows every attempt, and what the target answered, so that it cannot rewrite the terminal', async () => {
    expect(await (await exampleShell()).run(['show', '3'])).toEqual({ code: 0, out: THIRD, err: '' })
  })

  it('shows the last entry, the status at each target, and none of their secrets', async () => {
    const { code, out, err } = await (await exampleShell()).run(['show', 'last'])
    expect({ code, err }).toEqual({ code: 0, err: '' })
    expect(out.split('\n\n')[0]).toBe(String.raw`#5  x\u{1b}[2J  octo/other#7`)
    expect(out).toContain('verified    with the previous webhook secret\n')
    expect(out.slice(out.indexOf('localhost'), out.indexOf('headers'))).toBe(FIFTH_TARGETS)
  })

  it('says on a terminal when it came, in everyday words, and the day of an attempt only where it is another one', async () => {
    const here = await exampleShell()
    let out = ''
    const stdout = { isTTY: true, columns: 120, write: (text: string | Uint8Array) => (out += String(text)) }
    await here.run(['show', '5'], { stdout, env: { NO_COLOR: '1' } })
    expect(out).toMatch(/^received {4}15 Nov 2023 03:47:20, \d+ days ago$/m)
    expect(out).toMatch(/^ {2}03:43:20 {2}exit 1 38ms$/m)
  })

  it('marks an event that the payload does not prove', async () => {
    const here = shell()
    const restored = { how: 'compact', sha256: 'x'.repeat(43), unproved: true } as const
    await fill(here, async (journal) => void (await journal.append(opened('t', { restored }))))
    const { out } = await here.run(['show', '1'])
    expect(out).toContain('\nrestored    compact, after a tunnel changed the body\nunproved    the event: ')
    for (const command of [['show', '1'], ['log']]) {
      const ran = await here.run([...command, '--json'])
      expect(JSON.parse(ran.out)).toMatchObject({ restored: 'compact', unproved: true })
    }
  })

  it('decodes a form', async () => {
    const here = shell()
    const payload = '{"zen":"a\u009bb","n":[1]}'
    const form = opened('f', {
      headers: [['content-type', 'application/x-www-form-urlencoded; charset=utf-8']],
      body: Buffer.from(`payload=${encodeURIComponent(payload)}`),
    })
    await fill(here, async (journal) => void (await journal.append(form)))
    const { out } = await here.run(['show', '1'])
    expect(out.slice(out.indexOf('body'))).toBe(String.raw`body (60 bytes): JSON in a form
  {
    "zen": "a\u{9b}b",
    "n": [
      1
    ]
  }
`)
    const { payload: value, body } = JSON.parse((await here.run(['show', '1', '--json'])).out)
    expect({ value, body }).toEqual({ value: JSON.parse(payload), body: Buffer.from(form.body).toString() })
  })

  it.each([
    [false, delivery('b').body],
    [true, '\\u{0}\ufffd\\u{d}\n\ufeff'],
  ])(
    'gives the exact bytes, and nothing else, with --body; on a terminal (%j) none that rewrite it',
    async (isTTY, shown) => {
      const here = await exampleShell()
      const given: unknown[] = []
      const stdout = { isTTY, write: (bytes: string | Uint8Array) => given.push(bytes) }
      expect(await here.run(['show', '2', '--body', '--color', 'always'], { stdout })).toMatchObject({
        code: 0,
        err: '',
      })
      expect(given).toEqual([shown])
    },
  )

  it('shows the start of a long answer', async () => {
    const here = shell()
    const answer = Buffer.from(`${'x'.repeat(300)}\n${'line\n'.repeat(20)}`)
    await fill(
      here,
      async (journal) => {
        await journal.append(opened('a'))
        await journal.record(
          1,
          attempt(URL_TARGET, { status: 500, outcome: 'retry', answer, count: 2 }),
          failed,
        )
      },
      [URL_TARGET],
    )
    const { out } = await here.run(['show', '1'])
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
    const here = await exampleShell()
    const { code, out, err } = await here.run(['show', '3', '--json'])
    expect({ code, err, lines: out.split('\n').length }).toEqual({ code: 0, err: '', lines: 2 })
    const target = 'http://localhost:3000/hook'
    const refused = { outcome: 'refused', status: 404, ms: 12_345 }
    expect(JSON.parse(out)).toEqual({
      v: 1,
      type: 'delivery',
      n: 3,
      time: '2023-11-14T22:15:20.000Z',
      provider: 'github',
      delivery: 'c',
      event: 'issues',
      action: 'closed',
      repo: 'octo/demo',
      number: 12,
      ref: null,
      verifiedBy: 'current',
      restored: null,
      unproved: false,
      editedFrom: null,
      duplicates: 0,
      ignoredBy: null,
      size: 7,
      targets: [
        {
          target,
          state: 'failed',
          reason: 'answered 404',
          since: '2023-11-14T22:13:20.000Z',
          attempts: 4,
          ...refused,
        },
      ],
      hook: '42',
      headers: [
        { name: 'X-GitHub-Event', value: 'push' },
        { name: 'X-Twice', value: 'one' },
        { name: 'x-twice', value: 'two é' },
      ],
      bodyBase64: Buffer.from(delivery('c').body).toString('base64'),
      payload: null,
      attempts: [
        {
          time: '2023-11-14T22:15:20.000Z',
          target,
          outcome: 'unreachable',
          status: null,
          ms: 38,
          error: 'connection refused',
          count: 3,
          answer: '',
        },
        {
          time: '2023-11-14T22:16:20.000Z',
          target,
          ...refused,
          error: null,
          count: 1,
          answer: 'no\u001b[2J such\r\nthing\n',
        },
      ],
    })
    const [first, fifth] = await Promise.all(
      ['1', '5'].map(async (n) => JSON.parse((await here.run(['show', n, '--json'])).out)),
    )
    expect([first.body, first.payload, first.bodyBase64]).toEqual([
      Buffer.from(opened('a').body).toString(),
      JSON.parse(Buffer.from(opened('a').body).toString()),
      undefined,
    ])
    expect(fifth.attempts).toMatchObject([{ target: 'push=exec:./deploy.sh', answerBase64: '/woAew==' }])
    expect(JSON.stringify(fifth)).not.toContain('canary')
  })

  it('says which entries there are, exit 6', async () => {
    const here = await exampleShell()
    const range = 'Its entries are #1 to #5'
    expect(await here.run(['show', '6'])).toEqual({
      code: 6,
      out: '',
      err: `error: The journal has no entry #6. ${range}\n`,
    })
    expect(await here.run(['show', '0', '--json'])).toEqual({
      code: 6,
      out: '',
      err: `{"v":1,"type":"error","code":"no_match","error":"The journal has no entry #0. ${range}"}\n`,
    })
    await fill(here, async () => {}, [], 'empty')
    for (const n of ['1', 'last']) {
      expect(await here.run(['show', n, '--profile', 'empty'])).toEqual({
        code: 6,
        out: '',
        err: 'error: The journal is empty\n',
      })
    }
    expect(await here.run(['show', 'first'])).toEqual({
      code: 2,
      out: '',
      err: 'error: "first" is not an entry. Give its number, or last\n',
    })
  })

  it('is read while it is written, and received just now', async () => {
    const here = await exampleShell()
    await fill(here, async (journal) => {
      await journal.append(opened('new', { receivedAt: NOW }))
      expect((await here.run(['show', 'last'])).out).toContain('delivery new\n')
    })
  })
})
