import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { RelayError } from '../../src/base/errors.js'
import { printable } from '../../src/base/text.js'
import { hasDisplay } from '../../src/cli/browser.js'
import type { Context } from '../../src/cli/context.js'
import { fit } from '../../src/cli/help.js'
import type { ColorMode, OutputOptions } from '../../src/cli/output/output.js'
import { attemptText } from '../../src/cli/output/deliveries.js'
import {
  bold,
  cyan,
  dim,
  green,
  join,
  jsonLines,
  type Line,
  red,
  t,
  textOf,
  yellow,
} from '../../src/cli/output/text.js'
import { roughly, shownTime, spokenTime } from '../../src/cli/output/time.js'
import type { Attempt, Forward } from '../../src/journal/types.js'
import { testShell } from './cli-shell.js'

describe('an output', () => {
  const painted = (color: ColorMode, env: Context['env'], isTTY: boolean, columns = 80): boolean => {
    let err = ''
    const write = (text: string | Uint8Array): void => void (err += String(text))
    testShell({ env, stderr: { isTTY, columns, write }, color }).shell.out.say(red('x'))
    return err !== 'x\n'
  }

  it.each<[ColorMode, Context['env'], boolean, boolean]>([
    ['auto', { NO_COLOR: '' }, true, true],
    ['auto', { FORCE_COLOR: '1' }, false, true],
    ['auto', { FORCE_COLOR: '0' }, true, false],
    ['auto', { FORCE_COLOR: '1', NO_COLOR: '1' }, true, false],
    ['never', { FORCE_COLOR: '1' }, true, false],
  ])('--color %s with %j, terminal %s: colour %s', (mode, env, isTTY, expected) => {
    expect(painted(mode, env, isTTY)).toBe(expected)
  })

  const TIMED = ['info', 'warning: warn\\u{a}', 'error: error'].map((text) => `HH:MM:SS  ${text}`)

  it.each<[OutputOptions, string[]]>([
    [{}, ['say', 'info', 'warning: warn\\u{a}', 'error: error', ...TIMED]],
    [{ quiet: true, verbose: true }, ['warning: warn\\u{a}', 'error: error', ...TIMED.slice(1)]],
    [
      { verbose: true },
      ['say', 'debug', 'info', 'warning: warn\\u{a}', 'error: error', 'HH:MM:SS  debug', ...TIMED],
    ],
  ])(
    'with %j: results on one stream, messages on the other, those of a service with their time',
    (options, lines) => {
      const { shell, out, err } = testShell(options)
      const output = shell.out
      output.result('result')
      output.object({ type: 'x' })
      output.say('say')
      for (const log of [output.log, output.timedLog]) {
        log.debug('debug')
        log.info('info')
        log.warn('warn\n')
        log.error('error', new Error('hidden'))
      }
      expect(out()).toBe('result\n{"v":1,"type":"x"}\n')
      expect(err().replaceAll(/\d\d:\d\d:\d\d/g, 'HH:MM:SS')).toBe(lines.map((line) => `${line}\n`).join(''))
    },
  )

  it('escapes objects too, which stay the same JSON', () => {
    const { shell, out } = testShell()
    const value = { text: 'a\u001b\u009b\u061c\u202e\u2028👩‍💻' }
    shell.out.object(value)
    expect(out()).toBe(`${String.raw`{"v":1,"text":"a\u001b\u009b\u061c\u202e\u2028`}👩‍💻"}\n`)
    expect(JSON.parse(out())).toEqual({ v: 1, ...value })
  })
})

describe('text from outside', () => {
  const HOSTILE = 'a\u001b[2J\u001b]0;x\u0007\r\nb\u009b31m\u202e\u2028\u007f\u061c'
  const STYLES = [1, 2, 22, 31, 32, 33, 36, 39].map((code) => `\u001b[${code}m`)
  const ESCAPED = String.raw`a\u{1b}[2J\u{1b}]0;x\u{7}\u{d}\u{a}b\u{9b}31m\u{202e}\u{2028}\u{7f}\u{61c}`

  const lines: readonly Line[] = [
    HOSTILE,
    t`${HOSTILE}${t`${HOSTILE}`}`,
    ...[bold, dim, green, red, yellow, cyan].map((style) => style(HOSTILE)),
  ]

  it.each([false, true])('cannot rewrite the terminal (messages as JSON: %s)', async (jsonLog) => {
    let printed = ''
    const stream = {
      isTTY: true,
      columns: 80,
      write: (text: string | Uint8Array) => (printed += String(text)),
    }
    const env = { RELAY_DEBUG: '1', PAGER: 'cat' }
    const { out } = testShell({
      env,
      stdout: stream,
      stderr: stream,
      color: 'always',
      verbose: true,
      jsonLog,
    }).shell
    for (const line of lines) {
      out.result(line)
      out.say(line)
      await out.pages([line])
    }
    out.exactly(HOSTILE)
    out.object({ text: HOSTILE, [HOSTILE]: [HOSTILE] })
    for (const log of [out.log, out.timedLog]) {
      for (const level of ['debug', 'info', 'warn'] as const) log[level](HOSTILE)
      log.error(HOSTILE, new Error(HOSTILE))
    }
    out.failure(new RelayError('internal', HOSTILE))
    // What is left are the styles of the output itself, and line feeds.
    const text = STYLES.reduce((rest, style) => rest.replaceAll(style, ''), printed).replaceAll('\n', '')
    expect(text).toBe(printable(text))
    expect(text).toContain(jsonLog ? String.raw`\u{1b}` : String.raw`a\u{1b}[2J`)
  })

  it('is on one line, escaped, whatever its style', () => {
    const { shell, out } = testShell()
    for (const line of lines) shell.out.result(line)
    expect(out()).toBe(
      [ESCAPED, ESCAPED + ESCAPED, ...Array.from({ length: 6 }, () => ESCAPED)]
        .map((line) => `${line}\n`)
        .join(''),
    )
  })
})

describe('messages as JSON', () => {
  const line = (level: string, message: string, more = {}) => ({
    v: 1,
    time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
    level,
    message,
    ...more,
  })
  const [debug, warn, error] = [line('debug', 'a'), line('warn', 'e'), line('error', 'f')]
  const info = [line('info', 'b'), line('info', 'c d')]
  const event = line('info', 'g', { n: 2, delivery: 'x' })
  const cause = expect.stringMatching(/^Error: why\n +at /)

  it.each<[OutputOptions, Record<string, string>, object[]]>([
    [{ color: 'always' }, {}, [...info, warn, error, event]],
    [{ verbose: true }, {}, [debug, ...info, warn, error, event]],
    [{ quiet: true, verbose: true }, {}, [warn, error]],
    [{}, { RELAY_DEBUG: '1' }, [...info, warn, { ...error, cause }, event]],
  ])('with %j and %j have a time, a level, a text without styles, and fields', (options, env, lines) => {
    const { shell, out, err } = testShell({ env, ...options, jsonLog: true })
    const output = shell.out
    output.log.debug('a')
    output.timedLog.info('b')
    output.say(t`${bold('c')} ${dim('d')}`)
    output.log.warn('e')
    output.timedLog.error('f', new Error('why'))
    output.event('info', 'g', { time: 1, n: 2, delivery: 'x' })
    expect(out()).toBe('')
    const objects = err().trimEnd().split('\n')
    expect(objects.map((text): unknown => JSON.parse(text))).toEqual(lines)
  })
})

it('colours JSON without changing it', () => {
  fc.assert(
    fc.property(fc.json(), (json) => {
      const pretty = JSON.stringify(JSON.parse(json), null, 2)
      expect(jsonLines(pretty).map(String)).toEqual(pretty.split('\n').map(printable))
    }),
  )
})

it('counts on a terminal, on a line that whatever follows takes', () => {
  const stream = (isTTY: boolean) => {
    const written: string[] = []
    return {
      isTTY,
      columns: 80,
      written,
      write: (text: string | Uint8Array) => void written.push(String(text)),
    }
  }
  const stderr = stream(true)
  const { out } = testShell({ stderr }).shell
  out.count('1/2')
  out.count('2/2')
  out.result('done')
  out.count(undefined)
  expect(stderr.written).toEqual(['1/2', '\r\u001b[K', '2/2', '\r\u001b[K'])
  for (const options of [{ stderr: stream(false) }, { stderr: stream(true), quiet: true }]) {
    testShell(options).shell.out.count('1/2')
    expect(options.stderr.written).toEqual([])
  }
})

const TEXT = fc.string({ unit: 'grapheme', maxLength: 30 })
const WIDTH = fc.nat({ max: 40 })

describe('the width of text', () => {
  it.each([
    ['push', 4],
    ['日本語', 6],
    ['e\u0301', 1],
    ['👩‍👩‍👧 👍', 5],
    ['✓ ✗ ↻ ◦ … │', 11],
  ])('%s: %d columns', (text, width) => {
    expect(textOf(text).width).toBe(width)
  })

  it.each([
    ['日本語', 5, '日本…', '…本語'],
    ['日本語', 4, '日…', '…語'],
    ['cafe\u0301s', 4, 'caf…', '…fe\u0301s'],
    ['push', 4, 'push', 'push'],
    ['push', 1, '…', '…'],
    ['push', 0, '', ''],
  ])('%s in %d columns', (text, width, start, end) => {
    const line = textOf(text)
    expect({ start: String(line.cut(width)), end: String(line.cutStart(width)) }).toEqual({ start, end })
  })

  it('is never more than was asked for', () => {
    fc.assert(
      fc.property(TEXT, WIDTH, (text, width) => {
        const line = textOf(text)
        for (const shown of [line.cut(width), line.cutStart(width), t`${bold(text)}${text}`.cut(width)])
          expect(shown.width).toBeLessThanOrEqual(width)
        expect(line.pad(width).width).toBe(Math.max(width, line.width))
      }),
    )
  })
})

describe('a line broken at spaces', () => {
  it('continues below, indented', () => {
    const line = t`${dim('12:04:11')}  app ${bold('is down: connection refused')}`
    expect(line.wrap(30, 10).map(String)).toEqual(['12:04:11  app is down:', '          connection refused'])
  })

  it('continues below what follows a label', () => {
    expect(t`${dim('reason      ')}there is no signature`.wrap(26).map(String)).toEqual([
      'reason      there is no',
      '            signature',
    ])
    expect(t`  text, then two spaces  `.wrap(14).map(String)).toEqual(['  text, then', '    two spaces'])
  })

  it('indents less what only then fits, and leaves whole what never does', () => {
    expect(
      t`go to http://localhost:3000/ or http://localhost:3000/long/path`.wrap(24, 10).map(String),
    ).toEqual(['go to', '  http://localhost:3000/', '          or', '  http://localhost:3000/long/path'])
  })

  it('loses no word, and is wider than asked for only by one word', () => {
    fc.assert(
      fc.property(fc.array(fc.stringMatching(/^[a-z日]{1,12}$/), { minLength: 1 }), WIDTH, (words, width) => {
        const lines = join(words.map((word, i) => (i % 2 === 0 ? bold(`${word} `) : `${word} `))).wrap(
          width,
          4,
        )
        expect(lines.flatMap((line) => String(line).trim().split(' ')).filter(Boolean)).toEqual(words)
        for (const line of lines)
          expect(line.width <= width + 1 || !String(line).trim().includes(' ')).toBe(true)
      }),
    )
  })

  it('is broken at no change of style, and JSON not at all', () => {
    expect(t`${bold('one')}, ${green('two')},`.wrap(5, 0).map(String)).toEqual(['one,', 'two,'])
    expect(jsonLines('{"text": "two words", "more": 1}')[0]?.wrap(10).map(String)).toEqual([
      '{"text": "two words", "more": 1}',
    ])
  })
})

describe('fit', () => {
  const fitted = (text: string, columns: number): string => fit(text, { columns, write: () => {} })

  it.each([
    ['Usage: relay\n\n  -q  quiet\n', 13, 'Usage: relay\n\n  -q  quiet\n'],
    ['one two three\n  relay serve --port 1', 10, 'one two\nthree\n  relay\n     serve\n    --port\n      1'],
    ['  -q  say nothing but errors', 17, '  -q  say nothing\n      but errors'],
    ['  --provider <name>  which code host', 26, '  --provider <name>  which\n      code host'],
    ['to listen on (env:\u00a0RELAY_PORT)', 24, 'to listen on\n(env: RELAY_PORT)'],
  ])('%j in %d columns', (text, columns, expected) => {
    expect(fitted(text, columns)).toBe(expected)
  })

  it('never breaks a word, and keeps every word', () => {
    const line = fc.tuple(fc.nat(4), fc.array(fc.stringMatching(/^\S{1,9}$/), { minLength: 1 }), fc.boolean())
    fc.assert(
      fc.property(line, fc.integer({ min: 20, max: 60 }), ([indent, words, table], width) => {
        const [first = '', ...rest] = words
        const text = `${' '.repeat(indent)}${first}${table ? '   ' : ' '}${rest.join(' ')}`
        const out = fitted(text, width)
        expect(out.split(/\s+/).filter(Boolean)).toEqual(words)
        expect(out.split('\n').filter((one) => one.length > width && one.trim().includes(' '))).toEqual([])
      }),
    )
  })
})

/** A Monday, in the time zone of the tests, which has no summer time. */
const NOW = Date.parse('2026-11-23T14:03:22')
const at = (local: string): number => Date.parse(local)

describe('a time for a person', () => {
  it.each([
    ['2026-11-23T14:03:22', '14:03:22 today, 0 s ago', '14:03:22'],
    ['2026-11-23T14:01:20', '14:01:20 today, 2 min ago', '14:01:20'],
    ['2026-11-23T00:00:00', '00:00:00 today, 14 h ago', '00:00:00'],
    ['2026-11-22T23:59:59', 'Sun 22 Nov 23:59:59, 14 h ago', 'Sun 23:59'],
    ['2026-11-18T12:00:00', 'Wed 18 Nov 12:00:00, 5 days ago', 'Wed 12:00'],
    ['2026-01-31T12:00:00', '31 Jan 2026 12:00:00, 296 days ago', '31 Jan 12:00'],
    ['2025-01-31T12:00:00', '31 Jan 2025 12:00:00, 661 days ago', '31 Jan 2025'],
    ['2026-11-23T14:05:00', '14:05:00 today, in 98 s', '14:05:00'],
    ['2026-12-23T14:03:22', '23 Dec 2026 14:03:22, in 30 days', '23 Dec 14:03'],
  ])('%s is %s, in a column %s', (local, sentence, column) => {
    expect(shownTime(at(local), true, NOW)).toBe(sentence)
    expect(spokenTime(at(local), NOW)).toBe(column)
    expect(shownTime(at(local), false, NOW)).toBe(local.replace('T', ' '))
  })

  it.each([
    [119_999, '119 s'],
    [120_000, '2 min'],
    [7_199_999, '119 min'],
    [7_200_000, '2 h'],
    [172_799_999, '47 h'],
    [172_800_000, '2 days'],
  ])('%d ms are roughly %s', (ms, text) => {
    expect(roughly(ms)).toBe(text)
  })
})

it.each([
  [{}, 'linux', false],
  [{ DISPLAY: '' }, 'linux', false],
  [{ DISPLAY: ':0' }, 'linux', true],
  [{ WAYLAND_DISPLAY: 'wayland-0' }, 'linux', true],
  [{ WSL_DISTRO_NAME: 'Debian' }, 'linux', true],
  [{ BROWSER: 'w3m' }, 'linux', true],
  [{ DISPLAY: ':10', SSH_CONNECTION: 'x' }, 'linux', false],
  [{}, 'darwin', true],
  [{ SSH_CONNECTION: 'x' }, 'darwin', false],
  [{}, 'win32', true],
] as const)('hasDisplay %j on %s: %s', (env, platform, has) => {
  expect(hasDisplay(env, platform)).toBe(has)
})

const HTTP = '*=http://localhost:3000'
const EXEC = 'push=exec:./deploy.sh'
const AT = 1_700_000_000_000
const waiting: Forward = { status: 'waiting', tries: 0, since: AT }
const succeeded: Forward = { status: 'succeeded', tries: 0, since: AT }
const failed: Forward = { status: 'failed', tries: 5, since: AT }

function attempt(target: string, more: Partial<Attempt> = {}): Attempt {
  const answer = new Uint8Array()
  return { at: AT, target, outcome: 'succeeded', status: 200, ms: 38, answer, error: null, count: 1, ...more }
}

describe('an attempt on a line', () => {
  it.each<[string, Parameters<typeof attemptText>]>([
    ['✓ 202 38ms', [succeeded, attempt(HTTP, { status: 202 })]],
    ['✓ 1.2s', [succeeded, attempt(EXEC, { status: 0, ms: 1234 })]],
    ['↻ 500 again in 2s', [waiting, attempt(HTTP, { outcome: 'retry', status: 500 }), AT + 38 + 1900]],
    [
      '✗ 500 38ms, five times',
      [{ ...failed, reason: 'answered 500, five times' }, attempt(HTTP, { outcome: 'retry', status: 500 })],
    ],
    [
      '✗ 404 38ms',
      [{ ...failed, reason: 'answered 404' }, attempt(HTTP, { outcome: 'refused', status: 404 })],
    ],
    [
      '✗ exit 3 38ms',
      [{ ...failed, reason: 'exit code 3' }, attempt(EXEC, { outcome: 'refused', status: 3 })],
    ],
    [
      String.raw`✗ refused 38ms, \u{1b}`,
      [{ ...failed, reason: '\u001b' }, attempt(HTTP, { outcome: 'refused', status: null })],
    ],
    ['◦ down', [waiting, attempt(HTTP, { outcome: 'unreachable', status: null })]],
    ['◦ timed out', [waiting, attempt(HTTP, { outcome: 'timed out', status: null })]],
    ['◦ waiting', [waiting, undefined]],
    ['✗ older than 24 h', [{ ...failed, reason: 'older than 24 h' }, undefined]],
  ])('%s', (text, given) => {
    expect(String(attemptText(...given))).toBe(text)
  })
})
