import { setImmediate } from 'node:timers/promises'
import { RelayError } from '../../base/errors.js'
import type { Recorded } from '../../replay/fixture.js'
import { secretPrint } from '../../instance/running.js'
import { parseEdit } from '../../replay/edit.js'
import { deliveryId, prepare, type PrepareOptions, type Tamper, withFreshId } from '../../replay/prepare.js'
import { type Answer, type Expectation, openSender, parseExpectation } from '../../replay/send.js'
import type { WebhookRequest } from '../../webhook/intake.js'
import type { Flags, Shell } from '../command.js'
import { bytesField } from '../output/deliveries.js'
import { green, type Line, red, t, textOf } from '../output/text.js'
import { attach, openData, notServed, requireSecret, webhookSecret } from '../profile.js'
import { targetAddress } from '../settings/parse.js'

/** The flags of the commands that send requests: replay and trigger. */
export interface SendFlags extends Flags {
  readonly secretEnv?: string
  readonly to?: string
  readonly set?: readonly string[]
  readonly setOnly?: readonly string[]
  readonly tamper?: Tamper
  readonly keepId?: boolean
  readonly expect: string
  readonly stop?: boolean
}

/** How requests are made, sent and checked. */
export interface SendPlan extends Omit<PrepareOptions, 'secret'> {
  /** The address of `--to`; undefined for the running instance. */
  readonly to: string | undefined
  readonly secretEnv: string | undefined
  readonly keepId: boolean
  readonly expectation: Expectation
  readonly stop: boolean
}

/** @throws RelayError `usage` that names the flag. */
export function readPlan({ set = [], setOnly = [], ...flags }: SendFlags): SendPlan {
  let to: string | undefined
  try {
    if (flags.to !== undefined) to = targetAddress(flags.to)
  } catch (cause) {
    throw new RelayError('usage', `--to: ${cause instanceof Error ? cause.message : ''}`, { cause })
  }
  return {
    to,
    secretEnv: flags.secretEnv,
    edits: [...set.map((text) => parseEdit(text)), ...setOnly.map((text) => parseEdit(text, { only: true }))],
    tamper: flags.tamper,
    keepId: flags.keepId === true,
    expectation: parseExpectation(flags.expect),
    stop: flags.stop === true,
  }
}

/** The profile whose requests are sent, or that receives them, and its data. @throws RelayError as {@link attach}; `storage` */
export async function openSending(shell: Shell, flags: SendFlags, { to }: SendPlan) {
  const attached = await attach(shell, flags, to === undefined ? 'existing' : 'alone')
  const data = await openData(attached)
  return { attached, data, [Symbol.asyncDispose]: async () => data?.[Symbol.asyncDispose]() }
}
export type Sending = Awaited<ReturnType<typeof openSending>>

/** A delivery to send or to verify. */
export interface Item {
  /** The name on its line: a file, `#7`. */
  readonly name: string
  /** Reads it; undefined when an old entry is gone by then. @throws RelayError that names an invalid file. */
  readonly load: () => Promise<Recorded | undefined>
}

/** The result of one request. */
export interface Result {
  readonly name: string
  readonly event: string
  readonly delivery: string
  readonly ok: boolean
  readonly expected: string
  readonly answer: Answer
}

/** Requests below which no count is shown. */
const MIN_COUNTED = 50
/** The columns before the name; a longer line continues below it. */
const VERDICT = 5

/**
 * Sends every item and prints the results. An item that cannot be read or signed ends the run, after those before it were sent.
 * `onResult` can give a result another line than the usual one; there is no total then.
 * @throws RelayError `target_failed` when a status is not the expected one; `no_match` when all entries are gone; what loading
 * an item throws; `usage` that names an item that cannot be edited; `unavailable` without an address or an instance; `settings` without a
 * secret to sign with
 */
export async function send(
  shell: Shell,
  plan: SendPlan,
  items: readonly Item[],
  { attached, data }: Sending,
  onResult?: (result: Result) => Promise<Line | undefined>,
): Promise<void> {
  const { out, signal } = shell
  const { to, secretEnv, expectation, keepId, stop } = plan
  // Files were read synchronously, so Ctrl-C is noticed only now.
  await setImmediate()
  signal.throwIfAborted()
  const { instance } = attached
  if (to === undefined && !instance) throw notServed(attached, ', or name an address with --to')
  const found = await webhookSecret(shell, attached, { secretEnv, data })
  const { secret, place } = requireSecret(found, 'sign with')
  const width = items.reduce((widest, { name }) => Math.max(widest, textOf(name).width), 0)
  // Where the results are on the same screen, each is a line already.
  const isCounted = !out.isTerminal && items.length >= MIN_COUNTED
  let [sent, failed, refused] = [0, 0, 0]
  let hasLines = false
  await using sender = openSender(to ?? `${instance?.url}/webhook`)
  try {
    for (const { name, load } of items) {
      const recorded = await load()
      // An entry that is gone from the journal by now.
      if (!recorded) continue
      const request = prepareNamed(name, recorded, { ...plan, secret })
      const outgoing = keepId ? request : withFreshId(request)
      const answer = await sender.send(outgoing, { signal })
      const ok = expectation.fits(answer.status)
      const delivery = deliveryId(outgoing)
      const result = { name, event: recorded.event, delivery, ok, expected: expectation.text, answer }
      sent += 1
      if (!ok) failed += 1
      if (!ok && answer.status === 401) refused += 1
      const line = await onResult?.(result)
      hasLines ||= line !== undefined
      if (shell.json) out.object(resultObject(result))
      else out.result(line ?? resultLine(result, width, out.width), VERDICT)
      if (isCounted) out.count(`${sent}/${items.length}`)
      if (!ok && stop) break
    }
  } finally {
    out.count(undefined)
    if (failed === 0 && sent > 0 && !hasLines) out.say(`${sent} sent`)
  }
  if (sent === 0) throw new RelayError('no_match', 'The selected entries are gone from the journal')
  if (failed === 0) return
  const text = `${failed} of ${sent} answers were not as expected`
  const isOther = to === undefined && instance && secretPrint(instance, secret) !== instance.secretPrint
  if (refused === 0 || !isOther) throw new RelayError('target_failed', text)
  const whose = place === 'profile' ? 'the profile' : place
  throw new RelayError(
    'target_failed',
    `${text}. This shell signs with the webhook secret of ${whose}, and process ${instance.pid} has another. Set RELAY_WEBHOOK_SECRET to the secret that relay serve was started with`,
  )
}

function prepareNamed(name: string, recorded: Recorded, options: PrepareOptions): WebhookRequest {
  try {
    return prepare(recorded, options)
  } catch (error) {
    throw error instanceof RelayError ? new RelayError(error.kind, `${name}: ${error.message}`) : error
  }
}

/** Columns for the verdict, the status and the time. */
const AROUND_NAME = 20
/** Columns of an unexpected answer, or of why there is none. */
const MAX_REASON = 120

/**
 * `ok   push.json  200  31ms`, `FAIL push.json  500  12ms  expected 2xx: {"error":"…"}`; `width` is that of the
 * names, which lose their start where `columns` are too few for them.
 */
function resultLine({ name, ok, expected, answer }: Result, width: number, columns: number): Line {
  const room = Math.min(width, columns - AROUND_NAME)
  const shown = textOf(name).cutStart(room).pad(room)
  const line = t` ${shown}  ${answer.status ?? '-'}  ${Math.round(answer.ms)}ms`
  const reason = textOf((answer.error ?? Buffer.from(answer.body).toString()).trim()).cut(MAX_REASON)
  return ok
    ? t`${green('ok  ')}${line}`
    : t`${red('FAIL')}${line}  expected ${expected}${reason.width === 0 ? '' : ': '}${reason}`
}

function resultObject({ answer, ...result }: Result): Record<string, unknown> {
  const { status, ms, error, body } = answer
  return { type: 'result', ...result, status, ms: Math.round(ms), error, ...bytesField('answer', body) }
}
