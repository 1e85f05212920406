import { type Command, Option } from 'commander'
import type { Tamper } from '../../replay/prepare.js'
import type { RawOptions } from '../globals.js'
import { collect } from '../journal/filter.js'
import type { SecretFlags } from '../signing-secret.js'

export type SendFlags = RawOptions &
  SecretFlags & {
    readonly to?: string
    readonly set?: readonly string[]
    readonly tamper?: Tamper
    readonly keepId?: boolean
    readonly expect: string
    readonly stop?: boolean
    readonly times: string
    readonly junit?: string
  }

const TAMPERS: readonly Tamper[] = ['signature', 'body']

/** Declares the flags by which replay and trigger send. */
export function addSendOptions(command: Command): Command {
  return command
    .option('--to <url>', 'send there (default: to the running relay serve)')
    .option('--secret-env <name>', 'sign with the secret in this variable (default: RELAY_WEBHOOK_SECRET)')
    .option('--set <path=value>', 'change a field of the payload, and sign anew; repeatable', collect)
    .addOption(new Option('--tamper <what>', 'spoil this after signing, to see it refused').choices(TAMPERS))
    .option('--keep-id', 'with the recorded delivery id (default: a fresh one each time)')
    .option('--expect <status>', 'the wanted answer: 2xx, 401, …', '2xx')
    .option('--stop', 'stop at the first other answer')
    .option('--times <n>', 'send each so often, and tell rate and latency', '1')
    .option('--concurrency <number>', 'so many at once')
    .option('--junit <file>', 'write the results there as JUnit XML, too')
}

export const SEND_ENVIRONMENT = ['home', 'store', 'webhookSecret'] as const
