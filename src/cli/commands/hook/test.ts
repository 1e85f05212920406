import { deadline, sleep } from '../../../base/abort.js'
import { RelayError } from '../../../base/errors.js'
import { explainHookError } from '../../../hooks/explain.js'
import type { Summary } from '../../../journal/delivery.js'
import { parseMatch } from '../../../journal/match.js'
import type { Context } from '../../context.js'
import { POLL_MS } from '../../journal/poll.js'
import { formatRepo } from '../../session/repo.js'
import { startCommand } from '../../session/start-command.js'
import type { CommonFlags } from '../../settings/prepare.js'
import { findOwnHook, type HookSession, openHookSession } from './hook-session.js'

/** How long the delivery may take, in milliseconds: usually a second or two. */
const LIMIT_MS = 30_000
/** Newest deliveries of the event among which it is looked for. */
const RECENT = 20

/** Runs `relay hook test`. */
export async function runTest(context: Context, flags: CommonFlags, text: string): Promise<void> {
  await using hooks = await openHookSession(context, flags, text)
  const { session, parts, repo } = hooks
  const { output, provider, instance, settings } = session
  if (!instance)
    throw new RelayError(
      'unavailable',
      `No relay is running for profile ${settings.profile} to receive the delivery. Start it with ${startCommand(settings)}`,
    )
  const hook = await findOwnHook(session, repo, await hooks.token(), { signal: context.signal })
  const before = await arrivals(hooks)
  await parts.provider.hooks
    .test(await hooks.token(), repo, hook.id, { signal: context.signal })
    .catch((error: unknown) => {
      throw explainHookError(error, provider, repo)
    })
  const arrived = await awaitArrival(hooks, before, context.signal)
  if (!arrived) throw await notArrived(hooks, context.signal)
  if (flags.json) return output.object({ type: 'test', repo: formatRepo(repo), hook: hook.id, n: arrived.n })
  output.result(`${arrived.event} of ${formatRepo(repo)} arrived: #${arrived.n}`)
}

/** How often each of the newest test deliveries came: an equal one counts as another arrival of the first. */
async function arrivals({ session, journal, repo }: HookSession): Promise<ReadonlyMap<number, Arrival>> {
  const event = session.provider.name === 'gitea' ? 'push' : 'ping'
  const found = new Map<number, Arrival>()
  for await (const entry of journal.select({
    events: [parseMatch(event)],
    repo: formatRepo(repo),
    last: RECENT,
  }))
    found.set(entry.n, entry)
  return found
}

type Arrival = Pick<Summary, 'n' | 'event' | 'duplicates'>

async function awaitArrival(
  hooks: HookSession,
  before: ReadonlyMap<number, Arrival>,
  signal: AbortSignal,
): Promise<Arrival | undefined> {
  const limited = deadline(LIMIT_MS, signal)
  try {
    for (;;) {
      for (const entry of (await arrivals(hooks)).values())
        if (entry.duplicates > (before.get(entry.n)?.duplicates ?? -1)) return entry
      await sleep(POLL_MS, { signal: limited })
    }
  } catch (error) {
    if (signal.aborted || !limited.aborted) throw error
    return undefined
  }
}

/** With what the code host got for an answer. */
async function notArrived(hooks: HookSession, signal: AbortSignal): Promise<RelayError> {
  const token = await hooks.token()
  const { lastResponse } = await findOwnHook(hooks.session, hooks.repo, token, { signal })
  const answer = lastResponse ? ` The code host got: ${lastResponse.code} ${lastResponse.message}.` : ''
  return new RelayError(
    'timed_out',
    `The delivery did not arrive within ${LIMIT_MS / 1000} s.${answer} relay log --refused shows what was refused; relay hook add ${formatRepo(hooks.repo)} repairs the hook; relay doctor checks the rest`,
  )
}
