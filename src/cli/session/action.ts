import type { Cancellable } from '../../base/abort.js'
import { RelayError } from '../../base/errors.js'
import type { RelayClient } from '../../client/client.js'
import type { TokenOwner } from '../../tokens/tokens.js'
import type { Context } from '../context.js'
import type { CommonFlags } from '../settings/prepare.js'
import { openSession, type Session } from './session.js'
import type { FindTarget, FromFlag } from './subject.js'
import { checkHost, formatTarget, type Target } from './target.js'

export type ActionFlags = CommonFlags & FromFlag & { readonly dryRun?: boolean }

/** What an action works with: the service for what it writes, the code host itself for the rest. */
export interface Acting extends Pick<Session, 'host' | 'store' | 'output'> {
  readonly api: RelayClient
  readonly owner: TokenOwner
}

/** One write to the code host, as a command describes it. */
export interface Action<Result> {
  readonly name: 'comment' | 'merge' | 'react'
  /** Completes "would …". */
  readonly description: string
  readonly request: object
  /**
   * Reads what the write depends on, also with `--dry-run`, and resolves to the action that remains. Absent: it depends on nothing.
   * @throws RelayError when the write is not to be sent
   */
  check?(acting: Acting, options: Cancellable): Promise<Action<Result>>
  send(acting: Acting, options: Cancellable): Promise<Result>
  /** The line to print; undefined for none. */
  describe(result: Result): string | undefined
  /** The same for a person; undefined for the line above. */
  sentence?(result: Result): string | undefined
  /** A message about the result, also under `--json`. */
  note?(result: Result): string | undefined
}

/**
 * Sends a write once and prints its result: through the running instance, or in this process if there is none. With
 * `--dry-run` it prints what it would do and writes nothing; only `Action.check` then asks the code host, or renews a token.
 * @throws RelayError as {@link openSession}, `find`, `Session.owner`, `Action`, `RelayClient` and `CodeHost`; the message names
 * the next step if there is one.
 */
export async function act<Result extends object>(
  context: Context,
  flags: ActionFlags,
  find: FindTarget,
  plan: (target: Target) => Action<Result>,
): Promise<void> {
  await using session = await openSession(context, flags)
  const { output, settings } = session
  const target = await find(session)
  checkHost(target, settings.providerUrl)
  const planned = plan(target)
  if (flags.dryRun && !planned.check) return printPlan(session, flags, target, planned)
  const options = { signal: context.signal }
  const owner = await session.owner(options)
  const acting = { ...session, api: session.api(owner), owner }
  const explain = (error: unknown): never => {
    throw withNextStep(error, session)
  }
  const action = (await planned.check?.(acting, options).catch(explain)) ?? planned
  if (flags.dryRun) return printPlan(session, flags, target, action)
  const result = await action.send(acting, options).catch(explain)
  const line = (output.isTerminal ? action.sentence?.(result) : undefined) ?? action.describe(result)
  if (flags.json) output.object({ ...result })
  else if (line !== undefined) output.result(line)
  const note = action.note?.(result)
  if (note !== undefined) output.say(note)
}

function printPlan(
  { output, user, instance, settings }: Session,
  { json }: ActionFlags,
  target: Target,
  { name, description, request }: Pick<Action<never>, 'name' | 'description' | 'request'>,
): void {
  const { provider, providerUrl } = settings
  const through = instance?.url ?? null
  if (json)
    return output.object({
      dryRun: true,
      action: name,
      target: formatTarget(target),
      user,
      provider,
      providerUrl,
      through,
      request,
    })
  const way = through === null ? 'without a running instance' : `through the instance at ${through}`
  output.say(`would ${description} at ${providerUrl} as ${user}, ${way}`)
}

function withNextStep(error: unknown, { user, host }: Session): unknown {
  if (!(error instanceof RelayError)) return error
  const { kind, message, retryAfter } = error
  if (kind === 'unauthenticated')
    return new RelayError(kind, `${message} for ${user} at ${host.url}: run relay login`, {
      cause: error,
    })
  return retryAfter === undefined
    ? error
    : new RelayError(kind, `${message}; try again in ${retryAfter} s`, { retryAfter, cause: error })
}
