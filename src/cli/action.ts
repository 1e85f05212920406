import type { Cancellable } from '../base/abort.js'
import { RelayError } from '../base/errors.js'
import type { RelayClient } from '../client/client.js'
import type { Context } from './context.js'
import type { Output } from './output.js'
import type { RawOptions } from './globals.js'
import { openSession, type Session } from './session.js'
import { checkHost, formatTarget, type Target } from './target.js'

export type ActionFlags = RawOptions & { readonly dryRun?: boolean }

/** One write to the code host, as a command describes it. */
export interface Action<Result> {
  readonly name: 'comment' | 'merge' | 'react'
  readonly target: Target
  /** Completes "would …". */
  readonly words: string
  /** What is sent. */
  readonly request: object
  send(api: RelayClient, options: Cancellable): Promise<Result>
  print(result: Result, output: Output, json: boolean): void
}

/**
 * Does what a command describes, once: through the running instance, or in this process when there is none. With
 * `--dry-run` it says what it would do; the code host is not asked and no token is renewed.
 * @throws RelayError as {@link openSession}, `Session.holder` and `RelayClient`; the text names the next step where
 * there is one.
 */
export async function act<Result>(
  context: Context,
  flags: ActionFlags,
  action: Action<Result>,
): Promise<void> {
  await using session = await openSession(context, flags)
  const { output, settings } = session
  checkHost(action.target, settings.providerUrl)
  if (flags.dryRun) return plan(session, flags, action)
  const options = { signal: context.signal }
  const api = session.api(await session.holder(options))
  const result = await action.send(api, options).catch((error: unknown) => {
    throw withNextStep(error, session)
  })
  action.print(result, output, flags.json === true)
}

function plan(
  session: Session,
  { json }: ActionFlags,
  action: Pick<Action<never>, 'name' | 'target' | 'words' | 'request'>,
): void {
  const { output, user, instance, settings } = session
  const { provider, providerUrl } = settings
  const { name, words, request } = action
  const target = formatTarget(action.target)
  const through = instance?.url ?? null
  if (json)
    output.object({ dryRun: true, action: name, target, user, provider, providerUrl, through, request })
  else
    output.say(
      `would ${words} at ${providerUrl} as ${user}, ${through === null ? 'without a running instance' : `through the instance at ${through}`}`,
    )
}

function withNextStep(error: unknown, { user, provider }: Session): unknown {
  if (!(error instanceof RelayError)) return error
  const { kind, message, retryAfter } = error
  if (kind === 'unauthenticated')
    return new RelayError(kind, `${message} for ${user} at ${provider.url}: run relay login`, {
      cause: error,
    })
  return retryAfter === undefined
    ? error
    : new RelayError(kind, `${message}; try again in ${retryAfter} s`, { retryAfter, cause: error })
}
