import { describe, expect, it } from 'vitest'
import type { Context } from '../../../src/old/context.js'
import { printable } from '../../../src/base/printable.js'
import { bold, cyan, dim, green, type Line, red, yellow } from '../../../src/old/output/line.js'
import { type ColorMode, createOutput, type Output } from '../../../src/old/output/output.js'
import { testContext } from '../../helpers/context.js'

describe('printable', () => {
  it('shows what could rewrite the terminal, and leaves letters and emoji alone', () => {
    expect(printable('a\u001b[2Jb\r\n\u009b\u202ec\u2028')).toBe(
      String.raw`a\u{1b}[2Jb\u{d}\u{a}\u{9b}\u{202e}c\u{2028}`,
    )
    expect(printable('Zoë 👩‍💻 日本')).toBe('Zoë 👩‍💻 日本')
  })
})

describe('createOutput', () => {
  const painted = (color: ColorMode, env: Context['env'], isTTY: boolean, columns = 80): boolean => {
    let err = ''
    const write = (text: string | Uint8Array): void => void (err += String(text))
    const { context } = testContext({ env, stderr: { isTTY, columns, write } })
    createOutput(context, { color }).say(red('x'))
    return err !== 'x\n'
  }

  it.each<[ColorMode, Context['env'], boolean, boolean]>([
    ['auto', {}, true, true],
    ['auto', {}, false, false],
    ['auto', { TERM: 'dumb' }, true, false],
    ['auto', { NO_COLOR: '1' }, true, false],
    ['auto', { NO_COLOR: '' }, true, true],
    ['auto', { FORCE_COLOR: '1' }, false, true],
    ['auto', { FORCE_COLOR: '0' }, true, false],
    ['auto', { FORCE_COLOR: '1', NO_COLOR: '1' }, true, false],
    ['always', { NO_COLOR: '1' }, false, true],
    ['never', { FORCE_COLOR: '1' }, true, false],
  ])('--color %s with %j, terminal %s: colour %s', (mode, env, isTTY, expected) => {
    expect(painted(mode, env, isTTY)).toBe(expected)
  })

  it('keeps results and talk apart', () => {
    const { context, out, err } = testContext()
    const output = createOutput(context)
    output.result('r')
    output.object({ type: 'x' })
    output.say('s')
    output.log.info('i')
    output.log.debug('d')
    output.log.warn('w\n')
    output.log.error('e', new Error('hidden'))
    expect(out()).toBe('r\n{"v":1,"type":"x"}\n')
    expect(err()).toBe('s\ni\nwarning: w\\u{a}\nerror: e\n')
  })

  it('puts the time of day before each line of a service', () => {
    const { context, err } = testContext()
    const { timedLog } = createOutput(context, { verbose: true })
    timedLog.debug('d')
    timedLog.info('i')
    timedLog.warn('w\n')
    timedLog.error('e')
    expect(err().replaceAll(/\d\d:\d\d:\d\d/g, 'HH:MM:SS')).toBe(
      ['d', 'i', 'warning: w\\u{a}', 'error: e'].map((line) => `HH:MM:SS  ${line}\n`).join(''),
    )
  })

  it('escapes objects too, which stay the same JSON', () => {
    const { context, out } = testContext()
    const value = { text: 'a\u001b\u009b\u061c\u202e\u2028👩‍💻' }
    createOutput(context).object(value)
    expect(out()).toBe(`${String.raw`{"v":1,"text":"a\u001b\u009b\u061c\u202e\u2028`}👩‍💻"}\n`)
    expect(JSON.parse(out())).toEqual({ v: 1, ...value })
  })

  it('prints only warnings and errors with --quiet', () => {
    const { context, err } = testContext()
    const output = createOutput(context, { quiet: true })
    output.say('s')
    output.log.info('i')
    output.log.warn('w')
    output.log.error('e')
    expect(err()).toBe('warning: w\nerror: e\n')
  })
})

describe('text from outside', () => {
  const HOSTILE = 'a\u001b[2J\u001b]0;x\u0007\r\nb\u009b31m\u202e\u2028\u007f\u061c'
  const STYLES = [1, 2, 22, 31, 32, 33, 36, 39].map((code) => `\u001b[${code}m`)
  const ESCAPED = String.raw`a\u{1b}[2J\u{1b}]0;x\u{7}\u{d}\u{a}b\u{9b}31m\u{202e}\u{2028}\u{7f}\u{61c}`

  /** What each method of an output prints for hostile text, on a terminal. */
  const methods: Readonly<Record<keyof Output, (output: Output, line: Line) => void>> = {
    result: (output, line) => output.result(line),
    pages: (output, line) => void output.pages([line]),
    say: (output, line) => output.say(line),
    exactly: (output) => output.exactly(HOSTILE),
    object: (output) => output.object({ text: HOSTILE, [HOSTILE]: [HOSTILE] }),
    log: ({ log }) => {
      log.debug(HOSTILE)
      log.info(HOSTILE)
      log.warn(HOSTILE)
      log.error(HOSTILE, new Error(HOSTILE))
    },
    timedLog: ({ timedLog }) => timedLog.error(HOSTILE, new Error(HOSTILE)),
    jsonLog: ({ jsonLog }) => jsonLog?.event('warn', HOSTILE, { text: HOSTILE }),
    quiet: () => {},
    isTerminal: () => {},
    width: () => {},
    messageWidth: () => {},
    openFeed(output, line) {
      using feed = output.openFeed()
      feed?.add(() => [line], false)
      output.log.warn(HOSTILE)
    },
  }
  const lines: readonly Line[] = [
    HOSTILE,
    [HOSTILE, [HOSTILE]],
    ...[bold, dim, green, red, yellow, cyan].map((style) => [style(HOSTILE)]),
  ]

  const cases = Object.entries(methods).flatMap(([name, print]) =>
    [false, true].map((jsonLog) => ({ name, print, jsonLog })),
  )

  it.each(cases)(
    'cannot rewrite the terminal through $name (messages as JSON: $jsonLog)',
    ({ print, jsonLog }) => {
      for (const line of lines) {
        let printed = ''
        const stream = {
          isTTY: true,
          columns: 80,
          write: (text: string | Uint8Array) => (printed += String(text)),
        }
        const env = { RELAY_DEBUG: '1' }
        const { context } = testContext({ env, stdout: stream, stderr: stream })
        print(createOutput(context, { color: 'always', verbose: true, jsonLog }), line)
        // What is left are the styles of the output itself, and line feeds.
        const text = STYLES.reduce((rest, style) => rest.replaceAll(style, ''), printed).replaceAll('\n', '')
        expect(text).toBe(printable(text))
      }
    },
  )

  it('is on one line, escaped, whatever its style', () => {
    const { context, out } = testContext()
    const output = createOutput(context)
    for (const line of lines) output.result(line)
    expect(out()).toBe(
      [ESCAPED, ESCAPED + ESCAPED, ...Array.from({ length: 6 }, () => ESCAPED)]
        .map((line) => `${line}\n`)
        .join(''),
    )
  })
})
