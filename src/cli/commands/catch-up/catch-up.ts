import { type ErrorKind, RelayError } from '../../../base/errors.js'
import {
  catchUp,
  type CatchUpOptions,
  findMissed,
  oneCatchUp,
  placeIn,
  requireLog,
} from '../../../codehost/catch-up.js'
import { Journal } from '../../../journal/journal.js'
import type { Context } from '../../context.js'
import { parseInstant } from '../../../journal/filter.js'
import { ASK_AGAIN, caughtUpText, failedObject, failedText, missedObject } from '../../output/caught-up.js'
import { eventName } from '../../output/delivery-line.js'
import { table } from '../../output/table.js'
import { localTime } from '../../output/time.js'
import { parseRepo } from '../../session/repo.js'
import { openSession, type Session } from '../../session/session.js'
import { startCommand } from '../../session/start-command.js'
import type { CommonFlags } from '../../settings/prepare.js'
import { findSources, type Source } from './sources.js'

type CatchUpFlags = CommonFlags & { readonly since?: string; readonly dryRun?: boolean }

/** Runs `relay catch-up`. */
export async function runCatchUp(context: Context, flags: CatchUpFlags, text?: string): Promise<void> {
  const now = Date.now()
  const given = flags.since === undefined ? undefined : parseInstant('--since', flags.since, now)
  const named = text === undefined ? undefined : parseRepo(text)
  await using session = await openSession(context, flags)
  requireLog(session.host)
  const since = given ?? now - (session.host.logPeriod ?? 0)
  if (!flags.dryRun) requireInstance(session)
  const { signal } = context
  const sources = await findSources(session, named, signal)
  let failed = 0
  const problems: RelayError[] = []
  for (const source of sources) {
    try {
      const options = await optionsFor(session, source, flags.since === undefined, { since, signal })
      if (flags.dryRun) await list(session, flags, source, options)
      else failed += report(session, flags, source, await alone(session, source, options))
    } catch (error) {
      if (sources.length === 1 || !isOfOneLog(error)) throw error
      const { kind, message } = error
      problems.push(
        new RelayError(kind, `Could not catch up with ${source.name}: ${message}`, { cause: error }),
      )
    }
  }
  const [problem, ...others] = problems
  for (const { message } of others) session.output.log.warn(message)
  if (problem) throw problem
  if (failed > 0) throw new RelayError('provider_failed', `${failed} could not be had. ${ASK_AGAIN}`)
}

/** Whether the other logs may well be read: the repository, its hook or the rights there are what fails. */
function isOfOneLog(error: unknown): error is RelayError {
  return error instanceof RelayError && OF_ONE_LOG.has(error.kind)
}

const OF_ONE_LOG: ReadonlySet<ErrorKind> = new Set(['no_match', 'not_found', 'forbidden', 'gone'])

function requireInstance({ instance, settings }: Session): void {
  if (instance) return
  throw new RelayError(
    'unavailable',
    `No relay is running for profile ${settings.profile} to receive what comes. Start it with ${startCommand(settings)} --catch-up`,
  )
}

/** @throws RelayError `no_match` when the hook does not lead here. */
async function optionsFor(
  { output, sql, limits, store, host }: Session,
  source: Source,
  /** Of an instant that the user named, nothing is skipped, and what is older stays missing. */
  keepsPlace: boolean,
  { since, signal }: { readonly since: number; readonly signal: AbortSignal },
): Promise<CatchUpOptions> {
  const onWait = (why: string, ms: number): void =>
    output.say(`Continues in ${Math.ceil(ms / 1000)} s: ${why}`)
  return {
    log: await source.open({ signal, onWait }),
    journal: new Journal(sql),
    ...(keepsPlace && { place: placeIn({ store, host, name: source.name }) }),
    since,
    signal,
    limits,
    onMissing: ({ length }) => length > 0 && output.say(`${source.name}: ${length} missing`),
    onWait,
  }
}

/** Catches up once no other process does. */
function alone({ host, store, output }: Session, source: Source, options: CatchUpOptions) {
  const waiting = { onBusy: (text: string): void => output.say(text), signal: options.signal }
  const named = { host, store, name: source.name }
  return oneCatchUp(named, () => catchUp(options), waiting).catch(explained(source))
}

function explained(source: Source): (error: unknown) => never {
  return (error) => {
    throw source.explain(error)
  }
}

async function list(
  session: Session,
  { json }: CatchUpFlags,
  source: Source,
  options: CatchUpOptions,
): Promise<void> {
  const { output } = session
  const { deliveries: missing } = await findMissed(options).catch(explained(source))
  if (json)
    for (const one of missing) output.object({ type: 'missing', ...source.object, ...missedObject(one) })
  else
    for (const line of table(missing.map((one) => [localTime(one.deliveredAt), eventName(one), one.guid])))
      output.result(line)
  output.say(`would ask for ${missing.length} of ${source.name}`)
}

/** Prints the result, and returns how many failed. */
function report(
  { output }: Session,
  { json }: CatchUpFlags,
  source: Source,
  result: Awaited<ReturnType<typeof catchUp>>,
): number {
  const { missing, arrived, failed } = result
  if (json)
    output.object({
      type: 'caught-up',
      ...source.object,
      missing,
      arrived,
      failed: failed.map(failedObject),
    })
  else {
    for (const one of failed) output.log.warn(failedText(one))
    output.result(caughtUpText(source.name, result))
  }
  return failed.length
}
