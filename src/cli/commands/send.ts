import { isUtf8 } from 'node:buffer'
import { setImmediate } from 'node:timers/promises'
import { RelayError } from '../../base/errors.js'
import { printable } from '../../base/text.js'
import type { Secret } from '../../base/secret.js'
import type { Recorded } from '../../replay/fixture.js'
import { secretPrint } from '../../instance/running.js'
import type { Database } from '../../store/open.js'
import { parseEdit } from '../../replay/edit.js'
import { type Expectation, parseExpectation } from '../../replay/send.js'
import { deliveryId, prepare, type PrepareOptions, type Tamper, withFreshId } from '../../replay/prepare.js'
import { type Answer, openSender } from '../../replay/send.js'
import type { WebhookRequest } from '../../webhook/intake.js'
import type { Flags, Shell } from '../command.js'
import { green, type Line, red, t, textOf } from '../output/text.js'
import { type Attached, attach, openData, requireSecret, startCommand, webhookSecret } from '../profile.js'
import { targetAddress } from '../settings/table.js'

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
  return {
    to: readAddress(flags.to),
    secretEnv: flags.secretEnv,
    edits: [...set.map((text) => parseEdit(text)), ...setOnly.map((text) => parseEdit(text, { only: true }))],
    tamper: flags.tamper,
    keepId: flags.keepId === true,
    expectation: parseExpectation(flags.expect),
    stop: flags.stop === true,
  }
}

function readAddress(to: string | undefined): string | undefined {
  try {
    return to === undefined ? undefined : targetAddress(to)
  } catch (cause) {
    throw new RelayError('usage', `--to: ${cause instanceof Error ? cause.message : ''}`, { cause })
  }
}

/** The profile whose requests are sent, or that receives them. */
export interface Sending extends AsyncDisposable {
  readonly attached: Attached
  readonly data: Database | undefined
}

/** @throws RelayError as {@link attach}; `storage`. */
export async function openSending(shell: Shell, flags: SendFlags, { to }: SendPlan): Promise<Sending> {
  const attached = await attach(shell, flags, to === undefined ? 'existing' : 'alone')
  const data = await openData(attached)
  return { attached, data, [Symbol.asyncDispose]: async () => data?.[Symbol.asyncDispose]() }
}

interface Destination {
  readonly url: string
  readonly secret: Secret
  /** Why the instance refuses the signatures of this secret, and how to fix it. Undefined if it is the instance's own. */
  readonly mismatch?: string
}

/** @throws RelayError `unavailable` without an address or an instance; `settings` without a secret to sign with. */
async function findDestination(
  shell: Shell,
  { to, secretEnv }: SendPlan,
  { attached, data }: Sending,
): Promise<Destination> {
  const { instance, profile, saved } = attached
  if (to === undefined && !instance)
    throw new RelayError(
      'unavailable',
      `No relay is running for profile ${profile}. Start it with ${startCommand({ profile, sandbox: saved?.sandbox ?? false })}, or name an address with --to`,
    )
  const { secret, place } = requireSecret(
    await webhookSecret(shell, attached, { secretEnv, data }),
    'sign with',
  )
  if (to !== undefined) return { url: to, secret }
  const url = `${instance?.url}/webhook`
  if (!instance || secretPrint(instance, secret) === instance.secretPrint) return { url, secret }
  const mismatch = `This shell signs with the webhook secret of ${place === 'profile' ? 'the profile' : place}, and process ${instance.pid} has another. Set RELAY_WEBHOOK_SECRET to the secret that relay serve was started with`
  return { url, secret, mismatch }
}

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

interface Listeners {
  /** The line for a result, where it differs from the usual one; there is no total then. */
  readonly describe?: ((result: Result) => Promise<Line | undefined>) | undefined
  /** Hears of each delivery that was answered 200. */
  readonly onAccepted?: ((deliveryId: string) => void) | undefined
}

/** Requests below which no count is shown. */
const MIN_COUNTED = 50
/** The columns before the name; a longer line continues below it. */
const VERDICT = 5

/**
 * Sends every item and prints the results. An item that cannot be read or signed ends the run, after those before it were sent.
 * @throws RelayError `target_failed` when a status is not the expected one; `no_match` when all entries are gone; what loading
 * an item throws; `usage` that names an item that cannot be edited.
 */
export async function send(
  shell: Shell,
  plan: SendPlan,
  items: readonly Item[],
  sending: Sending,
  { describe, onAccepted }: Listeners = {},
): Promise<void> {
  const { out, signal } = shell
  const { expectation, keepId, stop } = plan
  // Files were read synchronously, so Ctrl-C is noticed only now.
  await setImmediate()
  signal.throwIfAborted()
  const { url, secret, mismatch } = await findDestination(shell, plan, sending)
  const width = items.reduce((widest, { name }) => Math.max(widest, textOf(name).width), 0)
  // Where the results are on the same screen, each is a line already.
  const isCounted = !out.isTerminal && items.length >= MIN_COUNTED
  let [sent, failed, refused] = [0, 0, 0]
  let isDescribed = false
  await using sender = openSender(url)
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
      if (answer.status === 200) onAccepted?.(delivery)
      const line = await describe?.(result)
      isDescribed ||= line !== undefined
      if (shell.json) out.object(resultObject(result))
      else out.result(line ?? resultLine(result, width, out.width), VERDICT)
      if (isCounted) out.count(`${sent}/${items.length}`)
      if (!ok && stop) break
    }
  } finally {
    out.count(undefined)
    if (failed === 0 && sent > 0 && !isDescribed) out.say(`${sent} sent`)
  }
  if (sent === 0) throw new RelayError('no_match', 'The selected entries are gone from the journal')
  if (failed === 0) return
  const why = refused > 0 && mismatch !== undefined ? `. ${mismatch}` : ''
  throw new RelayError('target_failed', `${failed} of ${sent} answers were not as expected${why}`)
}

/** @throws RelayError `usage` that names an item that cannot be edited. */
function prepareNamed(name: string, recorded: Recorded, options: PrepareOptions): WebhookRequest {
  try {
    return prepare(recorded, options)
  } catch (error) {
    throw error instanceof RelayError ? new RelayError(error.kind, `${name}: ${error.message}`) : error
  }
}

/** Columns for the verdict, the status and the time. */
const AROUND_NAME = 20
/** Characters of an unexpected answer on a line. */
const MAX_REASON = 120

/**
 * `ok   push.json  200  31ms`, `FAIL push.json  500  12ms  expected 2xx: {"error":"…"}`; `width` is that of the
 * names, which lose their start where `columns` are too few for them.
 */
function resultLine({ name, ok, expected, answer }: Result, width: number, columns: number): Line {
  const room = Math.min(width, columns - AROUND_NAME)
  const shown = textOf(name).cutStart(room).pad(room)
  const line = t` ${shown}  ${answer.status ?? '-'}  ${Math.round(answer.ms)}ms`
  return ok
    ? t`${green('ok  ')}${line}`
    : t`${red('FAIL')}${line}  expected ${expected}${formatReason(answer)}`
}

function resultObject({ answer, ...result }: Result): Record<string, unknown> {
  const { status, ms, error, body } = answer
  const bytes = Buffer.from(body)
  const text = isUtf8(bytes) ? { answer: bytes.toString() } : { answerBase64: bytes.toString('base64') }
  return { type: 'result', ...result, status, ms: Math.round(ms), error, ...text }
}

/** Why there is no answer, or the start of the answer. */
function formatReason({ error, body }: Pick<Answer, 'error' | 'body'>): string {
  const text = printable((error ?? Buffer.from(body).toString()).trim())
  if (text === '') return ''
  return `: ${text.length > MAX_REASON ? `${text.slice(0, MAX_REASON)}…` : text}`
}
