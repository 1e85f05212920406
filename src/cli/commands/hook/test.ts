import { deadline, sleep } from '../../../base/abort.js'
import { RelayError, toRelayError } from '../../../base/errors.js'
import type { Limits } from '../../../base/seams.js'
import { explainHookError } from '../../../codehost/hooks.js'
import type { Summary } from '../../../journal/types.js'
import { parseMatch } from '../../../journal/filter.js'
import type { HookDelivery, RepoHook } from '../../../codehost/host.js'
import type { Context } from '../../context.js'
import { POLL_MS } from '../../journal/poll.js'
import { formatRepo } from '../../session/repo.js'
import { startCommand } from '../../session/start-command.js'
import type { CommonFlags } from '../../settings/prepare.js'
import { findOwnHook, type HookSession, openHookSession } from './hook-session.js'

/** Newest deliveries of the event among which it is looked for. */
const RECENT = 20

/** Runs `relay hook test`. */
export async function runTest(context: Context, flags: CommonFlags, text: string): Promise<void> {
  await using hooks = await openHookSession(context, flags, text)
  const { session, place, repo } = hooks
  const { output, instance, settings, limits } = session
  const { signal } = context
  if (!instance)
    throw new RelayError(
      'unavailable',
      `No relay is running for profile ${settings.profile} to receive the delivery. Start it with ${startCommand(settings)}`,
    )
  const hook = await findOwnHook(session, place)
  requireTestEvent(hooks, hook)
  const logged = await newestLogged(hooks, hook)
  const test: Test = {
    hooks,
    hook,
    limits,
    signal,
    before: await arrivals(hooks, hook),
    logged: logged && new Set(logged.map(({ id }) => id)),
  }
  await place.hooks.test(repo, hook.id).catch((error: unknown) => {
    throw explainHookError(error, place)
  })
  const arrived = await awaitArrival(test)
  if (flags.json) return output.object({ type: 'test', repo: formatRepo(repo), hook: hook.id, n: arrived.n })
  output.result(`${arrived.event} of ${formatRepo(repo)} arrived: #${arrived.n}`)
}

/** A test under way. */
interface Test {
  readonly hooks: HookSession
  readonly hook: RepoHook
  readonly limits: Limits
  readonly signal: AbortSignal
  readonly before: ReadonlyMap<number, Arrival>
  /** Entries of the code host's log before the test, by id. */
  readonly logged: ReadonlySet<string> | undefined
}

/** @throws RelayError `conflict` where the code host's test is an event that the hook does not get: then it sends nothing, and no error. */
function requireTestEvent({ session: { host }, repo }: HookSession, { events }: RepoHook): void {
  const { testEvent, words } = host
  // Every hook gets a ping.
  if (testEvent === 'ping' || events.includes(testEvent)) return
  const name = formatRepo(repo)
  throw new RelayError(
    'conflict',
    `${words.label} tests a hook with a ${testEvent}, and the hook of ${name} gets none. Add that event: relay hook add ${name} --events ${testEvent},…`,
  )
}

/**
 * How often each of the newest test deliveries came: an equal one counts as another arrival of the first. `guid`: the delivery id, once
 * the code host's log shows it.
 */
async function arrivals(
  { session, journal, repo }: HookSession,
  { id }: Pick<RepoHook, 'id'>,
  guid?: string,
): Promise<ReadonlyMap<number, Arrival>> {
  const found = new Map<number, Arrival>()
  // Where the delivery names its hook, that counts: a repository that was renamed sends its new name. One that names neither may be ours.
  const isOurs = (entry: Summary): boolean =>
    entry.deliveryId === guid ||
    (entry.hookId === ''
      ? entry.repo === null || entry.repo.toLowerCase() === formatRepo(repo).toLowerCase()
      : entry.hookId === String(id))
  for await (const entry of journal.select({ events: [parseMatch(session.host.testEvent)], last: RECENT }))
    if (isOurs(entry)) found.set(entry.n, entry)
  return found
}

type Arrival = Pick<Summary, 'n' | 'event' | 'duplicates'>

/** @throws RelayError `timed_out` if it does not arrive, with what the code host got for an answer */
async function awaitArrival(test: Test): Promise<Arrival> {
  const { hooks, hook, limits, signal, before } = test
  const startedAt = performance.now()
  const limited = deadline(limits.arrival, signal)
  let logLook = limits.logLook
  let guid: string | undefined
  try {
    for (;;) {
      for (const entry of (await arrivals(hooks, hook, guid)).values())
        if (entry.duplicates > (before.get(entry.n)?.duplicates ?? -1)) return entry
      if (performance.now() - startedAt >= logLook) {
        logLook *= 2
        guid = await loggedId(test)
      }
      await sleep(POLL_MS, { signal: limited })
    }
  } catch (error) {
    if (signal.aborted || !limited.aborted) throw error
    throw notArrived(
      test,
      `The delivery did not arrive within ${limits.arrival / 1000} s`,
      await lastAnswer(test),
    )
  }
}

/**
 * The id of the test delivery in the code host's log, if it has one and shows it.
 * @throws RelayError `timed_out` if it failed, so that this is known at once
 */
async function loggedId({ hooks, hook, logged }: Test): Promise<string | undefined> {
  const { testEvent } = hooks.session.host
  const test = (await newestLogged(hooks, hook))?.find(({ event }) => event === testEvent)
  if (!test || !logged || logged.has(test.id)) return undefined
  if (test.statusCode >= 200 && test.statusCode < 300) return test.guid
  throw notArrived({ hooks, hook }, 'The delivery did not arrive', `${test.statusCode} ${test.status}`)
}

/** The newest entries of the hook's log; undefined where the code host has none, or fails. */
async function newestLogged(
  { place: { hooks, repo } }: HookSession,
  { id }: RepoHook,
): Promise<readonly HookDelivery[] | undefined> {
  return (await hooks.log?.(repo, id).page().catch(ignoreFailure))?.deliveries
}

/** What the code host shows as the hook's last answer; undefined if it shows none, or fails. */
async function lastAnswer({ hooks: { place }, hook }: Test): Promise<string | undefined> {
  const all = await place.hooks.list(place.repo).catch(ignoreFailure)
  const last = all?.find(({ id }) => id === hook.id)?.lastResponse
  return last && `${last.code} ${last.message}`
}

function ignoreFailure(error: unknown): undefined {
  if (toRelayError(error).kind === 'cancelled') throw error
}

function notArrived(
  { hooks, hook }: Pick<Test, 'hooks' | 'hook'>,
  what: string,
  answer: string | undefined,
): RelayError {
  const { url, words } = hooks.session.host
  const name = formatRepo(hooks.repo)
  const got = answer === undefined ? '' : ` The code host got: ${answer}.`
  const hint = words.testHint?.({ ...hooks.repo, url, id: hook.id })
  return new RelayError(
    'timed_out',
    `${what}.${got}${hint === undefined ? '' : ` ${hint}.`} relay log --refused shows what was refused; relay hook add ${name} repairs the hook; relay doctor checks the rest`,
  )
}
