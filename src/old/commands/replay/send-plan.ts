import { RelayError } from '../../../base/errors.js'
import { type Edit, parseEdit } from '../../../replay/edit.js'
import { type Expectation, parseExpectation } from '../../../replay/expectation.js'
import type { PrepareOptions } from '../../../replay/prepare.js'
import { MAX_CONCURRENCY } from '../../settings/options.js'
import { targetAddress, wholeNumber } from '../../settings/parsers.js'
import type { SendFlags } from './send-options.js'

/** How requests are made, sent and checked. */
export interface SendPlan extends Omit<PrepareOptions, 'secret'> {
  readonly edits: readonly Edit[]
  readonly to: string | undefined
  readonly keepId: boolean
  readonly expectation: Expectation
  readonly stop: boolean
  readonly times: number
  readonly concurrency: number
  readonly junit: string | undefined
}

const MAX_TIMES = 100_000_000

/** @throws RelayError `usage` that names the flag. */
export function readPlan(flags: SendFlags): SendPlan {
  const { set = [], setOnly = [], junit } = flags
  const times = parseFlag('--times', flags.times, wholeNumber(1, MAX_TIMES))
  if (times > 1 && junit !== undefined)
    throw new RelayError('usage', '--junit: reports each fixture once, so it cannot be combined with --times')
  return {
    to: flags.to === undefined ? undefined : parseFlag('--to', flags.to, targetAddress),
    edits: [...set.map((text) => parseEdit(text)), ...setOnly.map((text) => parseEdit(text, { only: true }))],
    tamper: flags.tamper,
    keepId: flags.keepId === true,
    expectation: parseExpectation(flags.expect),
    stop: flags.stop === true,
    times,
    concurrency: parseFlag('--concurrency', flags.concurrency, wholeNumber(1, MAX_CONCURRENCY)),
    junit,
  }
}

function parseFlag<T>(flag: string, text: string, parse: (text: string) => T): T {
  try {
    return parse(text)
  } catch (error) {
    throw new RelayError('usage', `${flag}: ${error instanceof Error ? error.message : ''}`, { cause: error })
  }
}
