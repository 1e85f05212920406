import { deadline, sleep } from '../../base/wait.js'
import { RelayError, toRelayError } from '../../base/errors.js'
import { explainHookError } from '../../codehost/hooks.js'
import type { HookDelivery, RepoHook } from '../../codehost/host.js'
import { parseMatch } from '../../journal/filter.js'
import type { Summary } from '../../journal/types.js'
import type { Flags, Shell } from '../command.js'
import { POLL_MS } from '../journal.js'
import { commandFor, notServed } from '../profile.js'
import type { Session } from '../session.js'
import { findOwnHook, type HookSession, openHookSession } from './hook.js'

export async function runTest(shell: Shell, flags: Flags, text: string): Promise<void> {
  const { out, json, signal } = shell
  await using session = await openHookSession(shell, flags, text)
  const { place, name } = session
  if (!session.attached.instance) throw notServed(session.attached)
  const hook = await findOwnHook(session, place)
  const { testEvent, words } = session.host
  // Every hook gets a ping. For want of another event, the code host sends nothing, and answers no error.
  if (testEvent !== 'ping' && !hook.events.includes(testEvent))
    throw new RelayError(
      'conflict',
      `${words.label} tests a hook with a ${testEvent}, and the hook of ${name} gets none. Add that event: ${commandFor(session.attached, `hook add ${name} --events ${testEvent},…`)}`,
    )
  const { n, event } = await testHook(session, hook, signal)
  if (json) out.object({ type: 'test', repo: name, hook: hook.id, n })
  else out.result(`${event} of ${name} arrived: #${n}`)
}

/** Newest deliveries of the event among which the test is looked for. */
const RECENT = 20

/** Has the code host send a test, and waits until it is in the journal. */
async function testHook(session: HookSession, hook: RepoHook, signal: AbortSignal): Promise<Summary> {
  const { place, name, host, limits } = session
  const { testEvent: event } = host
  const logged = await newestLogged(session, hook)
  const before = new Map((await recent(session)).map(({ n, duplicates }) => [n, duplicates]))
  await place.hooks.test(place.repo, hook.id).catch((error: unknown) => {
    throw explainHookError(error, place)
  })

  /** The id of the test, once the log shows it. */
  let guid: string | undefined
  /** Whether the time decides: there is no log, and nothing that names the repository has come. */
  let isByTime = false
  const isOurs = ({ deliveryId, hookId, repo }: Summary): boolean => {
    if (deliveryId === guid) return true
    // That counts, where it is named: a repository that was renamed sends its new name.
    if (hookId !== '') return hookId === String(hook.id)
    return isByTime || repo === null || repo.toLowerCase() === name.toLowerCase()
  }
  /** Finds it in the log; throws if it failed, so that this is known at once. */
  const lookInLog = async (): Promise<void> => {
    isByTime = !logged
    const newest = logged && (await newestLogged(session, hook))?.find((entry) => entry.event === event)
    if (!newest || logged.some(({ id }) => id === newest.id)) return
    const { statusCode, status } = newest
    if (statusCode < 200 || statusCode >= 300)
      throw notArrived(session, hook, 'The delivery did not arrive', `${statusCode} ${status}`)
    guid = newest.guid
  }

  const startedAt = performance.now()
  const limited = deadline(limits.arrival, signal)
  let logLook = limits.logLook
  try {
    for (;;) {
      // An equal delivery is a duplicate of an earlier one: its count says that another arrived.
      const arrived = (await recent(session)).find(
        (entry) => entry.duplicates > (before.get(entry.n) ?? -1) && isOurs(entry),
      )
      if (arrived) return arrived
      if (performance.now() - startedAt >= logLook) {
        logLook *= 2
        await lookInLog()
      }
      await sleep(POLL_MS, { signal: limited })
    }
  } catch (error) {
    if (signal.aborted || !limited.aborted) throw error
    const all = await place.hooks.list(place.repo).catch(ignoreFailure)
    const last = all?.find(({ id }) => id === hook.id)?.lastResponse
    const what = `The delivery did not arrive within ${limits.arrival / 1000} s`
    throw notArrived(session, hook, what, last && `${last.code} ${last.message}`)
  }
}

/** The newest deliveries of the event that is the code host's test. */
async function recent({ journal, host }: Session): Promise<readonly Summary[]> {
  const found: Summary[] = []
  for await (const entry of journal.select({ events: [parseMatch(host.testEvent)], last: RECENT }))
    found.push(entry)
  return found
}

/** The newest entries of the hook's log; undefined where the code host has none, or fails. */
async function newestLogged(
  { place: { hooks, repo } }: HookSession,
  { id }: RepoHook,
): Promise<readonly HookDelivery[] | undefined> {
  return (await hooks.log?.(repo, id).page().catch(ignoreFailure))?.deliveries
}

function ignoreFailure(error: unknown): undefined {
  if (toRelayError(error).kind === 'cancelled') throw error
}

function notArrived(
  { attached, host, place, name }: HookSession,
  { id }: RepoHook,
  what: string,
  answer: string | undefined,
): RelayError {
  const { url, words } = host
  const got = answer === undefined ? '' : ` The code host got: ${answer}.`
  const hint = words.testHint?.({ ...place.repo, url, id })
  const [log, add, doctor] = ['log --refused', `hook add ${name}`, 'doctor'].map((line) =>
    commandFor(attached, line),
  )
  return new RelayError(
    'timed_out',
    `${what}.${got}${hint === undefined ? '' : ` ${hint}.`} ${log} shows what was refused; ${add} repairs the hook; ${doctor} checks the rest`,
  )
}
