import { RelayError } from '../../../base/errors.js'
import {
  catchUp,
  type CatchUpOptions,
  type CaughtUp,
  findMissed,
  LOG_PERIOD_MS,
  logOf,
} from '../../../hooks/catch-up.js'
import { explainHookError } from '../../../hooks/explain.js'
import { oneCatchUp } from '../../../hooks/one-catch-up.js'
import { patiently } from '../../../hooks/patiently.js'
import { listSavedHooks } from '../../../hooks/saved.js'
import { openJournal } from '../../../journal/open.js'
import type { RepoTarget } from '../../../providers/provider.js'
import type { Context } from '../../context.js'
import { parseInstant } from '../../../journal/instant.js'
import { caughtUpText, failedObject, failedText, missedObject } from '../../output/caught-up.js'
import { eventName } from '../../output/delivery-line.js'
import { table } from '../../output/table.js'
import { localTime } from '../../output/time.js'
import { formatRepo, parseRepo } from '../../session/repo.js'
import { openSession, type Session } from '../../session/session.js'
import { startCommand } from '../../session/start-command.js'
import type { CommonFlags } from '../../settings/prepare.js'
import { findOwnHook } from '../hook/hook-session.js'

type CatchUpFlags = CommonFlags & { readonly since?: string; readonly dryRun?: boolean }

/** Runs `relay catch-up`. */
export async function runCatchUp(context: Context, flags: CatchUpFlags, text?: string): Promise<void> {
  const now = Date.now()
  const since = flags.since === undefined ? now - LOG_PERIOD_MS : parseInstant('--since', flags.since, now)
  const named = text === undefined ? undefined : parseRepo(text)
  await using session = await openSession(context, flags)
  requireLog(session)
  if (!flags.dryRun) requireInstance(session)
  const repos = named ? [named] : await listSavedHooks(session.store, session.provider)
  if (repos.length === 0)
    throw new RelayError(
      'no_match',
      'This profile has created no hooks. Name the repository, or create one with relay hook add',
    )
  let failed = 0
  for (const repo of repos) {
    const options = await optionsFor(session, repo, since, context.signal)
    if (flags.dryRun) await list(session, flags, repo, options)
    else failed += report(session, flags, repo, await alone(session, repo, options))
  }
  if (failed > 0) throw new RelayError('provider_failed', `${failed} could not be had`)
}

/** @throws RelayError `unprocessable` before anything else is asked. */
function requireLog({ provider }: Session): void {
  logOf(provider, { token: async () => '', repo: { owner: '', repo: '' } }, 0)
}

function requireInstance({ instance, settings }: Session): void {
  if (instance) return
  throw new RelayError(
    'unavailable',
    `No relay is running for profile ${settings.profile} to receive what comes. Start it with ${startCommand(settings)} --catch-up`,
  )
}

/** @throws RelayError `no_match` when the repository has no hook that leads here. */
async function optionsFor(
  session: Session,
  repo: RepoTarget,
  since: number,
  signal: AbortSignal,
): Promise<CatchUpOptions> {
  const { provider, output, sql } = session
  const token = async (): Promise<string> => (await session.owner({ signal })).accessToken
  const onWait = (why: string, ms: number): void =>
    output.say(`Continues in ${Math.ceil(ms / 1000)} s: ${why}`)
  const list: typeof provider.hooks.list = (...args) =>
    patiently(() => provider.hooks.list(...args), { signal, onWait })
  const patient = { ...session, provider: { ...provider, hooks: { ...provider.hooks, list } } }
  const hook = await findOwnHook(patient, repo, await token(), { signal })
  return {
    log: logOf(provider, { token, repo }, hook.id),
    journal: openJournal(sql, { log: output.log }),
    since,
    signal,
    onMissing: ({ length }) => length > 0 && output.say(`${formatRepo(repo)}: ${length} missing`),
    onWait,
  }
}

/** Catches up once no other process does. */
function alone({ provider, store, output }: Session, repo: RepoTarget, options: CatchUpOptions) {
  const onBusy = (text: string): void => output.say(text)
  const work = (): Promise<CaughtUp> => catchUp(options)
  const what = formatRepo(repo)
  const { signal } = options
  return oneCatchUp({ provider, store, what, onBusy, work, signal }).catch(explained({ provider }, repo))
}

function explained({ provider }: Pick<Session, 'provider'>, repo: RepoTarget): (error: unknown) => never {
  return (error) => {
    throw explainHookError(error, provider, repo)
  }
}

async function list(
  session: Session,
  { json }: CatchUpFlags,
  repo: RepoTarget,
  options: CatchUpOptions,
): Promise<void> {
  const { output } = session
  const missing = await findMissed(options).catch(explained(session, repo))
  if (json)
    for (const one of missing)
      output.object({ type: 'missing', repo: formatRepo(repo), ...missedObject(one) })
  else
    for (const line of table(missing.map((one) => [localTime(one.deliveredAt), eventName(one), one.guid])))
      output.result(line)
  output.say(`would ask for ${missing.length} of ${formatRepo(repo)}`)
}

/** Prints the result, and returns how many failed. */
function report({ output }: Session, { json }: CatchUpFlags, repo: RepoTarget, result: CaughtUp): number {
  const { missing, arrived, failed } = result
  if (json)
    output.object({
      type: 'caught-up',
      repo: formatRepo(repo),
      missing,
      arrived,
      failed: failed.map(failedObject),
    })
  else {
    for (const one of failed) output.log.warn(failedText(one))
    output.result(caughtUpText(formatRepo(repo), result))
  }
  return failed.length
}
