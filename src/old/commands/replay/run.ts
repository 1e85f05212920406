import { setImmediate } from 'node:timers/promises'
import { RelayError, toRelayError } from '../../../base/errors.js'
import type { Recorded } from '../../../fixtures/fixture.js'
import { inParallel } from '../../../replay/in-parallel.js'
import { deliveryId, prepare, type PrepareOptions, withFreshId } from '../../../replay/prepare.js'
import { openSender } from '../../../replay/send.js'
import type { WebhookRequest } from '../../../webhook/intake.js'
import type { Context } from '../../context.js'
import { startBar } from './bar.js'
import type { Address, Destination } from './destination.js'
import { createReport, type Report } from './report.js'
import type { Line } from '../../output/line.js'
import type { Result } from './result.js'
import type { Item } from './select-items.js'
import type { SendFlags } from './send-options.js'
import type { SendPlan } from './send-plan.js'

interface Job {
  readonly name: string
  readonly event: string
  readonly request: WebhookRequest
}

interface Listeners {
  /** The line for a result, where it differs from the usual one. */
  readonly describe?: ((result: Result) => Promise<Line | undefined>) | undefined
  /** Hears of each delivery that was answered 200. */
  readonly onAccepted?: ((deliveryId: string) => void) | undefined
}

/**
 * Sends every item the planned number of times and prints the results. An item that cannot be read or signed ends the run,
 * after those before it were sent.
 * @throws RelayError `target_failed` when a status is not the expected one; `no_match` when all entries are gone; what loading
 * an item throws; `usage` that names an item that cannot be edited.
 */
export async function run(
  context: Context,
  flags: SendFlags,
  plan: SendPlan,
  items: readonly Item[],
  destination: Destination,
  { describe, onAccepted }: Listeners = {},
): Promise<void> {
  const { signal } = context
  const { concurrency, expectation, keepId, stop, times } = plan
  // Files were read synchronously, so Ctrl-C is noticed only now.
  await setImmediate()
  signal.throwIfAborted()
  const address = destination.address()
  let refused = 0
  const report = createReport(context, flags, plan, destination, items)
  const bar = await startBar(context, items.length * times, report.silent)
  await using sender = openSender(address.url, concurrency)
  const send = async ({ name, event, request }: Job): Promise<boolean> => {
    const outgoing = keepId ? request : withFreshId(request)
    const answer = await sender.send(outgoing, { signal })
    const ok = expectation.fits(answer.status)
    const result = { name, event, delivery: deliveryId(outgoing), ok, expected: expectation.text, answer }
    if (!ok && answer.status === 401) refused += 1
    if (answer.status === 200) onAccepted?.(result.delivery)
    report.add(result, await describe?.(result))
    bar.step()
    return ok || !stop
  }
  try {
    await inParallel(jobs(items, plan, address), concurrency, send)
  } catch (error) {
    bar.end()
    await endEarly(report, error, destination)
    throw error
  }
  bar.end()
  const { sent, failed } = await report.end()
  if (sent === 0) throw new RelayError('no_match', 'The selected entries are gone from the journal')
  if (failed === 0) return
  const why = refused > 0 && address.mismatch !== undefined ? `. ${address.mismatch}` : ''
  throw new RelayError('target_failed', `${failed} of ${sent} answers were not as expected${why}`)
}

/** Reports a second failure without hiding the first. */
async function endEarly(report: Report, error: unknown, { output }: Destination): Promise<void> {
  try {
    await report.end(toRelayError(error))
  } catch (second) {
    output.say(toRelayError(second).message)
  }
}

/** Prepares each item when its turn comes, once for all its times. Skips an entry that is gone from the journal by then. */
async function* jobs(
  items: readonly Item[],
  { times, ...options }: SendPlan,
  { secret }: Address,
): AsyncGenerator<Job> {
  for (const { name, load } of items) {
    const recorded = await load()
    if (!recorded) continue
    const request = prepareNamed(name, recorded, { ...options, secret })
    for (let i = 0; i < times; i++) yield { name, event: recorded.event, request }
  }
}

/** @throws RelayError `usage` that names an item that cannot be edited. */
function prepareNamed(name: string, recorded: Recorded, options: PrepareOptions): WebhookRequest {
  try {
    return prepare(recorded, options)
  } catch (error) {
    throw error instanceof RelayError ? new RelayError(error.kind, `${name}: ${error.message}`) : error
  }
}
