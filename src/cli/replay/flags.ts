import { type Command, Option } from 'commander'
import { RelayError } from '../../base/errors.js'
import { type Edit, parseEdit } from '../../replay/edit.js'
import { type Expectation, parseExpectation } from '../../replay/expectation.js'
import { TAMPERS, type PrepareOptions } from '../../replay/prepare.js'
import type { RawOptions } from '../globals.js'
import { collect } from '../journal/filter.js'
import { pageAddress, wholeNumber } from '../parsers.js'
import type { SecretFlags } from '../signing-secret.js'

export type SendFlags = RawOptions &
  SecretFlags & {
    readonly to?: string
    readonly set?: readonly string[]
    readonly tamper?: (typeof TAMPERS)[number]
    readonly keepId?: boolean
    readonly expect: string
    readonly stop?: boolean
    readonly times: string
    readonly junit?: string
  }

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

/** Declares the flags by which replay and trigger send. */
export function addSendOptions(command: Command): Command {
  return command
    .option('--to <url>', 'send there (default: to the running relay serve)')
    .option('--secret-env <name>', 'sign with the secret in this variable (default: RELAY_WEBHOOK_SECRET)')
    .option('--set <path=value>', 'change a field of the payload, and sign anew; repeatable', collect)
    .addOption(
      new Option('--tamper <what>', 'spoil this after signing, to see it refused').choices([...TAMPERS]),
    )
    .option('--keep-id', 'with the recorded delivery id (default: a fresh one each time)')
    .option('--expect <status>', 'the wanted answer: 2xx, 401, …', '2xx')
    .option('--stop', 'stop at the first other answer')
    .option('--times <n>', 'send each so often, and tell rate and latency', '1')
    .option('--concurrency <number>', 'so many at once')
    .option('--junit <file>', 'write the results there as JUnit XML, too')
}

export const SEND_ENVIRONMENT = ['home', 'store', 'webhookSecret'] as const

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
