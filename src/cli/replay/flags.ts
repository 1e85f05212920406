import { RelayError } from '../../base/errors.js'
import { type Edit, parseEdit } from '../../replay/edit.js'
import { type Expectation, parseExpectation } from '../../replay/expectation.js'
import type { PrepareOptions } from '../../replay/prepare.js'
import { pageAddress, wholeNumber } from '../parsers.js'
import type { SendFlags } from './send-options.js'

/** How requests are made, sent and judged. */
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

const MOST_TIMES = 100_000_000
/** As many as there may be to a target of relay serve. */
const MOST_CONCURRENT = 64

/** @throws RelayError `usage` that names the flag. */
export function readSendFlags(flags: SendFlags): SendPlan {
  const { set = [], times: often, concurrency = '1', junit } = flags
  const times = checked('--times', often, wholeNumber(1, MOST_TIMES))
  if (times > 1 && junit !== undefined)
    throw new RelayError('usage', '--junit: has each fixture once, so it does not go with --times')
  return {
    to: flags.to === undefined ? undefined : checked('--to', flags.to, pageAddress),
    edits: set.map(parseEdit),
    tamper: flags.tamper,
    keepId: flags.keepId === true,
    expectation: parseExpectation(flags.expect),
    stop: flags.stop === true,
    times,
    concurrency: checked('--concurrency', String(concurrency), wholeNumber(1, MOST_CONCURRENT)),
    junit,
  }
}

function checked<T>(flag: string, text: string, parse: (text: string) => T): T {
  try {
    return parse(text)
  } catch (error) {
    throw new RelayError('usage', `${flag}: ${error instanceof Error ? error.message : ''}`, { cause: error })
  }
}
