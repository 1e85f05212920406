import { deadline, sleep } from '../../../base/abort.js'
import { RelayError, toRelayError } from '../../../base/errors.js'
import type { Limits } from '../../../base/seams.js'
import { logOf } from '../../../hooks/catch-up.js'
import { explainHookError } from '../../../hooks/explain.js'
import type { Summary } from '../../../journal/types.js'
import { parseMatch } from '../../../journal/filter.js'
import type { HookDelivery, RepoHook } from '../../../providers/hooks.js'
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
  const { session, parts, repo } = hooks
  const { output, provider, instance, settings, limits } = session
  const { signal } = context
  if (!instance)
    throw new RelayError(
      'unavailable',
      `No relay is running for profile ${settings.profile} to receive the delivery. Start it with ${startCommand(settings)}`,
    )
  const hook = await findOwnHook(session, repo, await hooks.token(), { signal })
  requireTestEvent(hooks, hook)
  const logged = await newestLogged(hooks, hook, signal)
  const test: Test = {
    hooks,
    hook,
    limits,
    signal,
    before: await arrivals(hooks, hook),
    logged: logged && new Set(logged.map(({ id }) => id)),
  }
  await parts.provider.hooks.test(await hooks.token(), repo, hook.id, { signal }).catch((error: unknown) => {
    throw explainHookError(error, provider, repo)
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

/** @throws RelayError `conflict` where the code host's test is a push, and the hook gets none: then it sends nothing, and no error. */
function requireTestEvent({ session: { provider }, repo }: HookSession, { events }: RepoHook): void {
  if (provider.name !== 'gitea' || events.includes('push')) return
  const name = formatRepo(repo)
  throw new RelayError(
    'conflict',
    `Gitea tests a hook with a push, and the hook of ${name} gets none. Add that event: relay hook add ${name} --events push,…`,
  )
}

/** How often each of the newest test deliveries came: an equal one counts as another arrival of the first. */
async function arrivals(
  { session, journal, repo }: HookSession,
  { id }: Pick<RepoHook, 'id'>,
): Promise<ReadonlyMap<number, Arrival>> {
  const event = session.provider.name === 'gitea' ? 'push' : 'ping'
  const found = new Map<number, Arrival>()
  // Where the delivery names its hook, that counts: a repository that was renamed sends its new name.
  const isOurs = (entry: Summary): boolean =>
    entry.hookId === ''
      ? entry.repo?.toLowerCase() === formatRepo(repo).toLowerCase()
      : entry.hookId === String(id)
  for await (const entry of journal.select({ events: [parseMatch(event)], last: RECENT }))
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
  try {
    for (;;) {
      for (const entry of (await arrivals(hooks, hook)).values())
        if (entry.duplicates > (before.get(entry.n)?.duplicates ?? -1)) return entry
      if (performance.now() - startedAt >= logLook) {
        logLook *= 2
        await throwIfFailed(test)
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

/** Looks into the code host's log, if it has one, so that a failure is known at once. */
async function throwIfFailed({ hooks, hook, signal, logged }: Test): Promise<void> {
  const ping = (await newestLogged(hooks, hook, signal))?.find(({ event }) => event === 'ping')
  if (!ping || !logged || logged.has(ping.id)) return
  if (ping.statusCode >= 200 && ping.statusCode < 300) return
  throw notArrived({ hooks, hook }, 'The delivery did not arrive', `${ping.statusCode} ${ping.status}`)
}

/** The newest entries of the hook's log; undefined where the code host has none, or fails. */
async function newestLogged(
  hooks: HookSession,
  { id }: RepoHook,
  signal: AbortSignal,
): Promise<readonly HookDelivery[] | undefined> {
  const { provider } = hooks.session
  if (!provider.hooks.log) return undefined
  const page = await logOf(provider, hooks, id).page(undefined, { signal }).catch(ignoreFailure)
  return page?.deliveries
}

/** What the code host shows as the hook's last answer; undefined if it shows none, or fails. */
async function lastAnswer({ hooks, hook, signal }: Test): Promise<string | undefined> {
  const { session, repo } = hooks
  const all = await session.provider.hooks.list(await hooks.token(), repo, { signal }).catch(ignoreFailure)
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
  const { provider } = hooks.session
  const name = formatRepo(hooks.repo)
  const got = answer === undefined ? '' : ` The code host got: ${answer}.`
  const gitea =
    provider.name === 'gitea'
      ? ` Gitea sends nothing to private addresses unless its setting webhook.ALLOWED_HOST_LIST has them, and no test of a repository without a commit or of a branch that the hook leaves out; ${provider.url}/${name}/settings/hooks/${hook.id} shows what it sent.`
      : ''
  return new RelayError(
    'timed_out',
    `${what}.${got}${gitea} relay log --refused shows what was refused; relay hook add ${name} repairs the hook; relay doctor checks the rest`,
  )
}
