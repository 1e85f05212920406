import { describe, expect, it } from 'vitest'
import type { Context } from '../../src/cli/context.js'
import { createOutput, printable, type ColorMode } from '../../src/cli/output.js'
import { testContext } from '../helpers/context.js'

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
    const { context } = testContext({ env, stderr: { isTTY, columns, write: () => {} } })
    return createOutput(context, { color, quiet: false, verbose: false }).paint.red('x') !== 'x'
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
    const output = createOutput(context, { color: 'auto', quiet: false, verbose: false })
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

  it('lets no object rewrite the terminal either, and stays the same JSON', () => {
    const { context, out } = testContext()
    const value = { text: 'a\u001b\u009b\u061c\u202e\u2028👩‍💻' }
    createOutput(context, { color: 'auto', quiet: false, verbose: false }).object(value)
    expect(out()).toBe(`${String.raw`{"v":1,"text":"a\u001b\u009b\u061c\u202e\u2028`}👩‍💻"}\n`)
    expect(JSON.parse(out())).toEqual({ v: 1, ...value })
  })

  it('is quiet on demand, but for what is wrong', () => {
    const { context, err } = testContext()
    const output = createOutput(context, { color: 'auto', quiet: true, verbose: false })
    output.say('s')
    output.log.info('i')
    output.log.warn('w')
    output.log.error('e')
    expect(err()).toBe('warning: w\nerror: e\n')
  })
})
