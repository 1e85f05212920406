import { describe, expect, it } from 'vitest'
import { bold, dim } from '../../../src/old/output/line.js'
import { createOutput, type Output, type OutputOptions } from '../../../src/old/output/output.js'
import { testContext } from '../../helpers/context.js'

const TIME = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)

/** What an output with JSON messages prints on standard error. */
function printed(print: (output: Output) => void, options: OutputOptions = {}, env = {}): unknown[] {
  const { context, out, err } = testContext({ env })
  print(createOutput(context, { ...options, jsonLog: true }))
  expect(out()).toBe('')
  return err()
    .split('\n')
    .filter(Boolean)
    .map((line): unknown => JSON.parse(line))
}

function printAll(output: Output): void {
  output.log.debug('a')
  output.timedLog.info('b')
  output.say([bold('c'), ' ', dim('d')])
  output.log.warn('e')
  output.timedLog.error('f', new Error('why'))
  output.jsonLog?.event('info', 'g', { time: 1, n: 2, delivery: 'x' })
}

const line = (level: string, message: string, more = {}) => ({ v: 1, time: TIME, level, message, ...more })

describe('messages as JSON', () => {
  it('have a time, a level, a text without styles, and fields', () => {
    expect(printed(printAll, { color: 'always' })).toEqual([
      line('info', 'b'),
      line('info', 'c d'),
      line('warn', 'e'),
      line('error', 'f'),
      line('info', 'g', { n: 2, delivery: 'x' }),
    ])
  })

  it('are more, or fewer, as for text', () => {
    expect(printed(printAll, { verbose: true })[0]).toEqual(line('debug', 'a'))
    expect(printed(printAll, { quiet: true, verbose: true })).toEqual([line('warn', 'e'), line('error', 'f')])
  })

  it('have the stack of a cause only with RELAY_DEBUG', () => {
    const cause = expect.stringMatching(/^Error: why\n +at /)
    expect(printed(printAll, {}, { RELAY_DEBUG: '1' })[3]).toEqual(line('error', 'f', { cause }))
  })

  it('are never drawn again, not on a terminal either', () => {
    const stream = { isTTY: true, columns: 20, write: () => true }
    const { context } = testContext({ stderr: stream })
    expect(createOutput(context, { color: 'always' }).openFeed()).toBeDefined()
    expect(createOutput(context, { color: 'always', jsonLog: true }).openFeed()).toBeUndefined()
  })
})
