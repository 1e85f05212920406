import type { Tamper } from '../../../replay/prepare.js'
import type { CommonFlags } from '../../settings/prepare.js'
import type { SecretFlags } from '../../settings/signing-secret.js'

/** The flags of the commands that send requests: replay and trigger. */
export type SendFlags = CommonFlags &
  SecretFlags & {
    readonly to?: string
    readonly set?: readonly string[]
    readonly setOnly?: readonly string[]
    readonly tamper?: Tamper
    readonly keepId?: boolean
    readonly expect: string
    readonly stop?: boolean
    readonly times: string
    readonly concurrency: string
    readonly junit?: string
  }

const TAMPERS: readonly Tamper[] = ['signature', 'body']

export const SECRET_OPTION = {
  flags: '--secret-env <variable>',
  help: 'variable that holds the webhook secret',
  defaultText: 'RELAY_WEBHOOK_SECRET',
} as const

/** What the declarations of these commands have in common. */
export const SEND = {
  options: [
    {
      flags: '--to <url>',
      help: 'send to this URL, or port of this machine',
      defaultText: 'the running relay serve',
    },
    SECRET_OPTION,
    {
      flags: '--set <path=value>',
      help: 'change a field of the payload, its copies and addresses, and sign again',
      repeatable: true,
    },
    { flags: '--set-only <path=value>', help: 'the same, but change nothing else', repeatable: true },
    {
      flags: '--tamper <part>',
      help: `change the ${TAMPERS.join(' or ')} after signing, to test that it is rejected`,
      choices: TAMPERS,
    },
    { flags: '--keep-id', help: 'send the recorded delivery id', defaultText: 'a new id each time' },
    { flags: '--expect <status>', help: 'expected status: 2xx, 401, …', default: '2xx' },
    { flags: '--stop', help: 'stop at the first unexpected status' },
    { flags: '--times <n>', help: 'send each N times and print rate and latency', default: '1' },
    { flags: '--concurrency <n>', help: 'number of parallel requests', default: '1' },
    { flags: '--junit <file>', help: 'also write the results to this file as JUnit XML' },
  ],
  environment: ['home', 'store', 'webhookSecret'],
  exitCodes: [[3, 'a status was not the expected one'], 130],
} as const
