import { setImmediate } from 'node:timers/promises'
import { RelayError, toRelayError } from '../../base/errors.js'
import type { Recorded } from '../../journal/fixture.js'
import { inParallel } from '../../replay/in-parallel.js'
import { deliveryId, prepare, type PrepareOptions, withFreshId } from '../../replay/prepare.js'
import { openSender } from '../../replay/send.js'
import type { WebhookRequest } from '../../webhook/intake.js'
import type { Context } from '../context.js'
import { startBar } from './bar.js'
import type { Destination } from './destination.js'
import type { SendPlan } from './flags.js'
import type { SendFlags } from './send-options.js'
import type { Item } from './item.js'
import { createReport, type Report } from './report.js'

interface Job {
  readonly name: string
  readonly event: string
  readonly request: WebhookRequest
}

/**
 * Sends every item as often as it is to be, and tells what became of it. One that cannot be read or made ends it after those
 * before it.
 * @throws RelayError `target_failed` when an answer is not the expected one; `no_match` when all items are gone; as the items'
 * loading does; `usage` naming what cannot be edited.
 */
export async function run(
  context: Context,
  flags: SendFlags,
  plan: SendPlan,
  items: readonly Item[],
  destination: Destination,
): Promise<void> {
  const { signal } = context
  const { concurrency, expectation, keepId, stop, times } = plan
  // Files were read without a turn of the event loop: only now can it be heard that somebody interrupts.
  await setImmediate()
  signal.throwIfAborted()
  const report = createReport(context, flags, plan, destination)
  const bar = await startBar(context, items.length * times, report.leavesRoom)
  await using sender = openSender(destination.url)
  const send = async ({ name, event, request }: Job): Promise<boolean> => {
    const outgoing = keepId ? request : withFreshId(request)
    const answer = await sender.send(outgoing, { signal })
    const ok = expectation.fits(answer.status)
    report.add({ name, event, delivery: deliveryId(outgoing), ok, expected: expectation.text, answer })
    bar.step()
    return ok || !stop
  }
  try {
    await inParallel(jobs(items, plan, destination), concurrency, send)
  } catch (error) {
    bar.end()
    await endEarly(report, error, destination)
    throw error
  }
  bar.end()
  const { sent, failed } = await report.end()
  if (sent === 0) throw new RelayError('no_match', 'What was to be sent is gone from the journal')
  if (failed > 0) throw new RelayError('target_failed', `${failed} of ${sent} not answered as expected`)
}

/** What goes wrong here must not hide why it ends. */
async function endEarly(report: Report, error: unknown, { output }: Destination): Promise<void> {
  try {
    await report.end(toRelayError(error))
  } catch (second) {
    output.say(toRelayError(second).message)
  }
}

/**
 * Each is made once for all its times, when its turn comes, and with it as many as are sent at once: to read them one after the
 * other, and then to check and sign them so, takes less than either between two requests.
 */
function* jobs(
  items: readonly Item[],
  { concurrency, times, ...options }: SendPlan,
  { secret }: Destination,
): Generator<Job> {
  for (let at = 0; at < items.length; at += concurrency) {
    const loaded = untilOneFails(items.slice(at, at + concurrency), load)
    const made = untilOneFails(loaded.done, (item) => make(item, { ...options, secret }))
    for (const job of made.done) for (let i = 0; i < times; i++) yield job
    const failed = made.failed ?? loaded.failed
    if (failed) throw failed.reason
  }
}

interface Done<To> {
  readonly done: readonly To[]
  /** Why the next could not be done: those before it are sent all the same. */
  readonly failed?: { readonly reason: unknown }
}

/** Leaves out what comes to nothing. */
function untilOneFails<From, To>(items: readonly From[], work: (item: From) => To | undefined): Done<To> {
  const done: To[] = []
  try {
    for (const item of items) {
      const result = work(item)
      if (result !== undefined) done.push(result)
    }
    return { done }
  } catch (reason) {
    return { done, failed: { reason } }
  }
}

interface Loaded {
  readonly name: string
  readonly recorded: Recorded
}

/** Nothing when it is gone from the journal since it was chosen. */
function load(item: Item): Loaded | undefined {
  const recorded = item.load()
  return recorded && { name: item.name, recorded }
}

function make({ name, recorded }: Loaded, options: PrepareOptions): Job {
  return { name, event: recorded.event, request: prepareNamed(name, recorded, options) }
}

/** @throws RelayError `usage` naming what cannot be edited. */
function prepareNamed(name: string, recorded: Recorded, options: PrepareOptions) {
  try {
    return prepare(recorded, options)
  } catch (error) {
    throw error instanceof RelayError ? new RelayError(error.kind, `${name}: ${error.message}`) : error
  }
}
