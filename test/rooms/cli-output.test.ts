import * as fc from 'fast-check'
import truncatedWidth from 'fast-string-truncated-width'
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
  joined,
  jsonLines,
  type Line,
  red,
  t,
  textOf,
  yellow,
} from '../../src/cli/output/text.js'
import { roughly, shownTime, spokenTime } from '../../src/cli/output/time.js'
import { attempt, failed, NOW as AT, waiting } from './journal-rig.js'
import { testShell } from './cli-shell.js'

/** A stream that may be a terminal, and what was written to it. */
function stream(isTTY: boolean) {
  const written: string[] = []
  const write = (text: string | Uint8Array): void => void written.push(String(text))
  return { isTTY, columns: 80, written, write }
}

it.each<[ColorMode, Context['env'], boolean, boolean]>([
  ['auto', { NO_COLOR: '' }, true, true],
  ['auto', { FORCE_COLOR: '1' }, false, true],
  ['auto', { FORCE_COLOR: '0' }, true, false],
  ['auto', { FORCE_COLOR: '1', NO_COLOR: '1' }, true, false],
  ['never', { FORCE_COLOR: '1' }, true, false],
])('--color %s with %j, terminal %s: colour %s', (color, env, isTTY, isPainted) => {
  const stderr = stream(isTTY)
  testShell({ env, stderr, color }).shell.out.say(red('x'))
  expect(stderr.written.join('') !== 'x\n').toBe(isPainted)
})

const UNTIMED = ['info', 'warning: warn\\u{a}', 'error: error']
const TIMED = UNTIMED.map((text) => `HH:MM:SS  ${text}`)

it.each<[OutputOptions, string[]]>([
  [{}, ['say', ...UNTIMED, ...TIMED]],
  [{ quiet: true, verbose: true }, [...UNTIMED.slice(1), ...TIMED.slice(1)]],
  [{ verbose: true }, ['say', 'debug', ...UNTIMED, 'HH:MM:SS  debug', ...TIMED]],
])('with %j results are on one stream, and messages on the other', (options, lines) => {
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
})

const messageOf = (level: string, message: string, more = {}) => {
  const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  return { v: 1, time, level, message, ...more }
}
const [DEBUG, WARN, ERROR] = [messageOf('debug', 'a'), messageOf('warn', 'e'), messageOf('error', 'f')]
const INFO = [messageOf('info', 'b'), messageOf('info', 'c d')]
const EVENT = messageOf('info', 'g', { n: 2, delivery: 'x' })
const CAUSED = { ...ERROR, cause: expect.stringMatching(/^Error: why\n +at /) }

it.each<[OutputOptions, Record<string, string>, object[]]>([
  [{ color: 'always' }, {}, [...INFO, WARN, ERROR, EVENT]],
  [{ verbose: true }, {}, [DEBUG, ...INFO, WARN, ERROR, EVENT]],
  [{ quiet: true, verbose: true }, {}, [WARN, ERROR]],
  [{}, { RELAY_DEBUG: '1' }, [...INFO, WARN, CAUSED, EVENT]],
])('with %j and %j messages as JSON have no styles', (options, env, objects) => {
  const { shell, out, err } = testShell({ env, ...options, jsonLog: true })
  const output = shell.out
  output.log.debug('a')
  output.timedLog.info('b')
  output.say(t`${bold('c')} ${dim('d')}`)
  output.log.warn('e')
  output.timedLog.error('f', new Error('why'))
  output.event('info', 'g', () => ({ time: 1, n: 2, delivery: 'x' }))
  expect(out()).toBe('')
  const lines = err().trimEnd().split('\n')
  expect(lines.map((text): unknown => JSON.parse(text))).toEqual(objects)
})

describe('text from outside', () => {
  const HOSTILE = 'a\u001b[2J\u001b]0;x\u0007\r\nb\u009b31m\u202e\u2028\u007f\u061c'
  const STYLES = [1, 2, 22, 31, 32, 33, 36, 39].map((code) => `\u001b[${code}m`)
  const ESCAPED = String.raw`a\u{1b}[2J\u{1b}]0;x\u{7}\u{d}\u{a}b\u{9b}31m\u{202e}\u{2028}\u{7f}\u{61c}`
  const styled = [bold, dim, green, red, yellow, cyan].map((style) => style(HOSTILE))
  const lines: readonly Line[] = [HOSTILE, t`${HOSTILE}${t`${HOSTILE}`}`, ...styled]

  it.each([false, true])('cannot rewrite the terminal (messages as JSON: %s)', async (jsonLog) => {
    const terminal = stream(true)
    const env = { RELAY_DEBUG: '1', PAGER: 'cat' }
    const streams = { stdout: terminal, stderr: terminal }
    const { out } = testShell({ env, ...streams, color: 'always', verbose: true, jsonLog }).shell
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
    const printed = terminal.written.join('')
    const text = STYLES.reduce((rest, style) => rest.replaceAll(style, ''), printed).replaceAll('\n', '')
    expect(text).toBe(printable(text))
    expect(text).toContain(jsonLog ? String.raw`\u{1b}` : String.raw`a\u{1b}[2J`)
  })

  it('is on one line, escaped, whatever its style, and in an object the same JSON', () => {
    const { shell, out } = testShell()
    for (const line of lines) shell.out.result(line)
    expect(out().split('\n')).toEqual([ESCAPED, ESCAPED + ESCAPED, ...styled.map(() => ESCAPED), ''])
    const other = testShell()
    const value = { text: 'a\u001b\u009b\u061c\u202e\u2028👩‍💻' }
    other.shell.out.object(value)
    expect(other.out()).toBe(`${String.raw`{"v":1,"text":"a\u001b\u009b\u061c\u202e\u2028`}👩‍💻"}\n`)
    expect(JSON.parse(other.out())).toEqual({ v: 1, ...value })
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

const WIDTH = fc.nat({ max: 40 })

describe('the width of text', () => {
  it.each([
    ['👩‍👩‍👧 👍', 5, 5, '👩‍👩‍👧 👍', '👩‍👩‍👧 👍'],
    ['✓ ✗ ↻ ◦ … │', 11, 11, '✓ ✗ ↻ ◦ … │', '✓ ✗ ↻ ◦ … │'],
    ['日本語', 6, 5, '日本…', '…本語'],
    ['日本語', 6, 4, '日…', '…語'],
    ['cafe\u0301s', 5, 4, 'caf…', '…fe\u0301s'],
    ['push', 4, 4, 'push', 'push'],
    ['push', 4, 1, '…', '…'],
    ['push', 4, 0, '', ''],
  ])('%s is %d columns wide, and in %d columns %s or %s', (text, width, columns, start, end) => {
    const line = textOf(text)
    const cuts = [line.cut(columns), line.cutStart(columns)].map(String)
    expect([line.width, ...cuts]).toEqual([width, start, end])
  })

  it('is what the library measures, with styles and without', () => {
    const unit = fc.oneof(
      fc.constantFrom('…', '→', '✓', '✗', '│', '↻', '◦', '·', '\ufe0f'),
      fc.string({ unit: 'grapheme', maxLength: 1 }),
    )
    fc.assert(
      fc.property(fc.string({ unit, maxLength: 30 }), (text) => {
        const { width } = truncatedWidth(printable(text))
        expect([textOf(text).width, bold(text).width]).toEqual([width, width])
      }),
    )
  })

  it('is never more than was asked for', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 30 }), WIDTH, (text, width) => {
        const line = textOf(text)
        for (const shown of [line.cut(width), line.cutStart(width), t`${bold(text)}${text}`.cut(width)])
          expect(shown.width).toBeLessThanOrEqual(width)
        expect(line.pad(width).width).toBe(Math.max(width, line.width))
      }),
    )
  })
})

describe('a line broken at spaces', () => {
  const DOWN = t`${dim('12:04:11')}  app ${bold('is down: connection refused')}`
  const LABELLED = t`${dim('reason      ')}there is no signature`
  const LONG = t`go to http://localhost:3000/ or http://localhost:3000/long/path`
  const LONG_LINES = 'go to\n  http://localhost:3000/\n          or\n  http://localhost:3000/long/path'
  const JSON_LINE = '{"text": "two words", "more": 1}'

  it.each<[string, ReturnType<typeof textOf> | undefined, number, number | undefined, string]>([
    ['below, indented', DOWN, 30, 10, '12:04:11  app is down:\n          connection refused'],
    ['below a label', LABELLED, 26, undefined, 'reason      there is no\n            signature'],
    ['below its start', t`  text, then two spaces  `, 14, undefined, '  text, then\n    two spaces'],
    ['with less indent, or whole, where it must', LONG, 24, 10, LONG_LINES],
    ['at no change of style', t`${bold('one')}, ${green('two')},`, 5, 0, 'one,\ntwo,'],
    ['not at all as JSON', jsonLines(JSON_LINE)[0], 10, undefined, JSON_LINE],
  ])('continues %s', (_, line, width, indent, lines) => {
    expect(line?.wrap(width, indent).map(String)).toEqual(lines.split('\n'))
  })

  it('loses no word, and is wider than asked for only by one word', () => {
    fc.assert(
      fc.property(fc.array(fc.stringMatching(/^[a-z日]{1,12}$/), { minLength: 1 }), WIDTH, (words, width) => {
        const text = joined(words.map((word, i) => (i % 2 === 0 ? bold(`${word} `) : `${word} `)))
        const lines = text.wrap(width, 4)
        expect(lines.flatMap((line) => String(line).trim().split(' ')).filter(Boolean)).toEqual(words)
        for (const line of lines)
          expect(line.width <= width + 1 || !String(line).trim().includes(' ')).toBe(true)
      }),
    )
  })
})

describe('fit', () => {
  const fitted = (text: string, columns: number): string => fit(text, { columns, write: () => {} })

  it.each([
    ['Usage: relay\n\n  -q  quiet\n', 13, 'Usage: relay\n\n  -q  quiet\n'],
    ['one two three\n  relay serve --port 1', 10, 'one two\nthree\n  relay\n     serve\n    --port\n      1'],
    ['  -q  say nothing but errors', 17, '  -q  say nothing\n      but errors'],
    ['  --provider <name>  which code host', 26, '  --provider <name>\n      which code host'],
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

it.each([
  ['2026-11-23T14:03:22', '14:03:22 today, 0 s ago', '14:03:22'],
  ['2026-11-23T14:01:20', '14:01:20 today, 2 min ago', '14:01:20'],
  ['2026-11-23T00:00:00', '00:00:00 today, 14 h ago', '00:00:00'],
  ['2026-11-22T23:59:59', 'Sun 22 Nov 23:59:59, 14 h ago', 'Sun 23:59'],
  ['2026-11-17T14:03:23', 'Tue 17 Nov 14:03:23, 5 days ago', 'Tue 14:03'],
  ['2026-11-17T14:03:22', '17 Nov 2026 14:03:22, 6 days ago', '17 Nov 14:03'],
  ['2026-01-31T12:00:00', '31 Jan 2026 12:00:00, 296 days ago', '31 Jan 12:00'],
  ['2025-01-31T12:00:00', '31 Jan 2025 12:00:00, 661 days ago', '31 Jan 2025'],
  ['2026-11-23T14:05:00', '14:05:00 today, in 98 s', '14:05:00'],
  ['2026-12-23T14:03:22', '23 Dec 2026 14:03:22, in 30 days', '23 Dec 14:03'],
])('the time %s is %s, in a column %s', (local, sentence, column) => {
  const at = Date.parse(local)
  expect([shownTime(at, true, NOW), spokenTime(at, NOW)]).toEqual([sentence, column])
  expect(shownTime(at, false, NOW)).toBe(local.replace('T', ' '))
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
const because = (reason: string) => ({ ...failed, reason })
const KILLED = { outcome: 'refused', status: null } as const
const retry = { outcome: 'retry', status: 500 } as const

it.each<[string, Parameters<typeof attemptText>]>([
  ['✓ 1.2s', [{ ...failed, status: 'succeeded' }, attempt(EXEC, { status: 0, ms: 1234 })]],
  ['↻ 500 again in 2s', [waiting, attempt(HTTP, { ...retry, at: AT }), AT + 38 + 1900]],
  ['✗ 500 38ms, five times', [because('answered 500, five times'), attempt(HTTP, retry)]],
  ['✗ failed 38ms, \\u{1b}', [because('\u001b'), attempt(HTTP, { outcome: 'refused', status: null })]],
  ['✗ killed 38ms, ended by SIGKILL', [because('ended by SIGKILL'), attempt(EXEC, KILLED)]],
  ['◦ interrupted', [waiting, attempt(EXEC, { outcome: 'killed', status: null })]],
  ['◦ timed out', [waiting, attempt(HTTP, { outcome: 'timed out', status: null })]],
  ['◦ waiting', [waiting, undefined]],
  ['✗ older than 24 h', [because('older than 24 h'), undefined]],
])('an attempt on a line: %s', (text, given) => {
  expect(String(attemptText(...given))).toBe(text)
})
