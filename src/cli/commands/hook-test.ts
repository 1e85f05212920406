import { deadline, sleep } from '../../base/wait.js'
import { RelayError, toRelayError } from '../../base/errors.js'
import { explainHookError } from '../../codehost/hooks.js'
import type { HookDelivery, RepoHook } from '../../codehost/host.js'
import { parseMatch } from '../../journal/filter.js'
import type { Summary } from '../../journal/types.js'
import type { Flags, Shell } from '../command.js'
import { POLL_MS } from '../journal.js'
import { startCommand } from '../profile.js'
import { findOwnHook, type HookSession, openHookSession } from './hook.js'

/** Runs `relay hook test`. */
export async function runTest(shell: Shell, flags: Flags, text: string): Promise<void> {
  const { out, json, signal } = shell
  await using hooks = await openHookSession(shell, flags, text)
  const { session, place, name } = hooks
  const { instance, profile } = session.attached
  if (!instance)
    throw new RelayError(
      'unavailable',
      `No relay is running for profile ${profile} to receive the delivery. Start it with ${startCommand({ profile })}`,
    )
  const hook = await findOwnHook(session, place)
  requireTestEvent(hooks, hook)
  const logged = await newestLogged(hooks, hook)
  const test: Test = {
    hooks,
    hook,
    signal,
    before: await recent(hooks),
    logged: logged && new Set(logged.map(({ id }) => id)),
  }
  await place.hooks.test(place.repo, hook.id).catch((error: unknown) => {
    throw explainHookError(error, place)
  })
  const { n, event } = await awaitArrival(test)
  if (json) out.object({ type: 'test', repo: name, hook: hook.id, n })
  else out.result(`${event} of ${name} arrived: #${n}`)
}

/** A test under way. */
interface Test {
  readonly hooks: HookSession
  readonly hook: RepoHook
  readonly signal: AbortSignal
  /** The newest test deliveries before it, by number. */
  readonly before: ReadonlyMap<number, Summary>
  /** Entries of the code host's log before it, by id; undefined where there is no log. */
  readonly logged: ReadonlySet<string> | undefined
}

/** @throws RelayError `conflict` where the hook does not get the event that is the code host's test: it then sends nothing, and no error */
function requireTestEvent({ session, name }: HookSession, { events }: RepoHook): void {
  const { testEvent, words } = session.host
  // Every hook gets a ping.
  if (testEvent === 'ping' || events.includes(testEvent)) return
  throw new RelayError(
    'conflict',
    `${words.label} tests a hook with a ${testEvent}, and the hook of ${name} gets none. Add that event: relay hook add ${name} --events ${testEvent},…`,
  )
}

/** Newest deliveries of the event among which the test is looked for. */
const RECENT = 20

/** The newest deliveries of the event that is the code host's test, by number. */
async function recent({ session: { journal, host } }: HookSession): Promise<ReadonlyMap<number, Summary>> {
  const found = new Map<number, Summary>()
  for await (const entry of journal.select({ events: [parseMatch(host.testEvent)], last: RECENT }))
    found.set(entry.n, entry)
  return found
}

/** What is known of the test's delivery besides its event. */
interface Signs {
  /** Its id, once the code host's log shows it. */
  readonly guid?: string | undefined
  /** There is no log, and nothing that names the repository has come: the time decides. */
  readonly byTime?: boolean
}

/** Where a delivery names its hook, that counts: a repository that was renamed sends its new name. */
function isOurs({ hooks, hook }: Test, { deliveryId, hookId, repo }: Summary, signs: Signs): boolean {
  if (deliveryId === signs.guid) return true
  if (hookId !== '') return hookId === String(hook.id)
  return signs.byTime === true || repo === null || repo.toLowerCase() === hooks.name.toLowerCase()
}

/** @throws RelayError `timed_out` if it does not arrive, with what the code host got for an answer */
async function awaitArrival(test: Test): Promise<Summary> {
  const { hooks, signal, before } = test
  const { limits } = hooks.session
  const startedAt = performance.now()
  const limited = deadline(limits.arrival, signal)
  let logLook = limits.logLook
  let signs: Signs = {}
  try {
    for (;;) {
      // An equal delivery is a duplicate of an earlier one: its count tells of another arrival.
      for (const entry of (await recent(hooks)).values())
        if (entry.duplicates > (before.get(entry.n)?.duplicates ?? -1) && isOurs(test, entry, signs))
          return entry
      if (performance.now() - startedAt >= logLook) {
        logLook *= 2
        signs = test.logged ? { guid: await loggedId(test) } : { byTime: true }
      }
      await sleep(POLL_MS, { signal: limited })
    }
  } catch (error) {
    if (signal.aborted || !limited.aborted) throw error
    const what = `The delivery did not arrive within ${limits.arrival / 1000} s`
    throw notArrived(test, what, await lastAnswer(test))
  }
}

/**
 * The id of the test delivery in the code host's log, if it has one and shows it.
 * @throws RelayError `timed_out` if it failed, so that this is known at once
 */
async function loggedId(test: Test): Promise<string | undefined> {
  const { hooks, hook, logged } = test
  const { testEvent } = hooks.session.host
  const newest = (await newestLogged(hooks, hook))?.find(({ event }) => event === testEvent)
  if (!newest || !logged || logged.has(newest.id)) return undefined
  const { statusCode, status, guid } = newest
  if (statusCode >= 200 && statusCode < 300) return guid
  throw notArrived(test, 'The delivery did not arrive', `${statusCode} ${status}`)
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

function notArrived({ hooks, hook }: Test, what: string, answer: string | undefined): RelayError {
  const { session, place, name } = hooks
  const { url, words } = session.host
  const got = answer === undefined ? '' : ` The code host got: ${answer}.`
  const hint = words.testHint?.({ ...place.repo, url, id: hook.id })
  return new RelayError(
    'timed_out',
    `${what}.${got}${hint === undefined ? '' : ` ${hint}.`} relay log --refused shows what was refused; relay hook add ${name} repairs the hook; relay doctor checks the rest`,
  )
}
