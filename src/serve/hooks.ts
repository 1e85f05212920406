import { otherAccountText } from '../auth/accounts.js'
import type { OwnApp } from '../auth/setup.js'
import { aborted, type Cancellable } from '../base/wait.js'
import type { Command } from '../base/command-line.js'
import { RelayError, toRelayError } from '../base/errors.js'
import type { Secret } from '../base/secret.js'
import type { WebhookSecrets } from '../base/settings.js'
import {
  explainLogError,
  formerText,
  type HookContext,
  type RegisteredHook,
  registerHook,
  removeFormer,
  SavedHooks,
  unregisterHook,
  type WantedHook,
} from '../codehost/hooks.js'
import type { Repo } from '../codehost/host.js'
import type { Core } from '../core.js'
import type { HookEvent } from '../events/hook-event.js'
import type { TokenOwner } from '../tokens/tokens.js'
import { keepWebhook, type WebhookParts } from './catching-up.js'
import type { Turn } from './duties.js'

/** Hooks to keep while relay runs. */
export interface HookPlan {
  readonly repos: readonly Repo[]
  /** User on whose behalf they are made. */
  readonly user: string
  /** True if the user id was chosen explicitly, as an application does. */
  readonly isUserNamed: boolean
  /** Command with which that user signs in again. */
  readonly login: string
  /** Completes a command line of relay for the profile, for messages. */
  readonly command: Command
  /** Adds the command of a first sign-in to the error of a missing token. */
  readonly onNoToken: (error: unknown) => never
  /** Catches up from these hooks and the profile's saved ones, and leaves them registered at the end. */
  readonly catchUp: boolean
}

export interface HookParts extends Omit<WebhookParts, 'stop'> {
  /** The turn in which the hooks are this relay's. */
  readonly turn: Turn
  /** Returns the user's token, renewed if necessary. @throws RelayError as `renewToken` */
  readonly owner: (userId: string, options?: Cancellable) => Promise<TokenOwner>
}

/**
 * Points the App's webhook to this relay, since a tunnel's address can change, and catches up, until `stop` aborts.
 * Does not reject.
 */
export async function runApp(
  parts: HookParts & { readonly stop: AbortSignal },
  app: OwnApp,
  catchUp: boolean,
): Promise<void> {
  const { address, core, stop } = parts
  const { slug, log } = app
  const onHook = announce(core)
  const url = await Promise.race([address.known, aborted(stop)])
  if (url === undefined) return
  await keepWebhook(
    {
      name: `the App ${slug}`,
      async make() {
        const repaired = await app.repair(url, secretOf(core))
        onHook({ app: slug, state: 'leads here', url, repaired })
        return catchUp ? log : undefined
      },
      onFailure: (error, retries) => onHook({ app: slug, state: 'failed', error, retries }),
      onChange: (state) => onHook({ app: slug, ...state }),
      explain: (error) => error,
    },
    parts,
  )
}

interface Parts extends HookParts {
  readonly plan: HookPlan
  /** Ends every wait. */
  readonly stop: AbortSignal
  /** Cancels every call. */
  readonly cut: AbortSignal
  /** Warnings about the user's account that were logged. */
  readonly warned: Set<string>
}

/**
 * Makes the hooks and catches up. Disposing of it removes the hooks that it made, unless relay catches up from them.
 */
export function startHooks(sources: HookParts, plan: HookPlan): AsyncDisposable {
  const [stop, cut] = [new AbortController(), new AbortController()]
  const parts: Parts = { ...sources, plan, stop: stop.signal, cut: cut.signal, warned: new Set() }
  const { address, core, turn } = sources
  /**
   * Keeps all hooks. Resolves, once stopped or all is done, to the address of the hooks if there was one. Does not
   * reject.
   */
  const runAll = async (): Promise<string | undefined> => {
    const url = await Promise.race([address.known, aborted(stop.signal)])
    if (url === undefined) return undefined
    const list = plan.catchUp ? savedHooks(core).list() : Promise.resolve([])
    const all = distinct([...(await list.catch(() => [])), ...plan.repos])
    await Promise.all(all.map((repo) => runHook(parts, repo, url)))
    return url
  }
  const running = runAll()
  return {
    async [Symbol.asyncDispose]() {
      stop.abort()
      // A pending call may still make a hook, which then has to be removed.
      const { removal } = core.limits
      const tooSlow = `The code host did not answer within ${removal / 1000} s`
      const limit = setTimeout(() => cut.abort(new RelayError('provider_timeout', tooSlow)), removal)
      const url = await running
      // If unknown, the hooks stay: a later relay takes them over, as it does after a crash.
      const isKept = turn.lost.aborted || (await turn.hasOthers().catch(() => true))
      if (url !== undefined && !isKept)
        await Promise.all(distinct(plan.repos).map((repo) => endHook(parts, repo, url)))
      clearTimeout(limit)
    },
  }
}

/** Removes duplicates: repository names ignore case. The last one of several counts. */
function distinct(repos: readonly Repo[]): readonly Repo[] {
  return [...new Map(repos.map((repo) => [nameOf(repo).toLowerCase(), repo])).values()]
}

/** Keeps one hook until relay stops. Does not reject. */
async function runHook(parts: Parts, repo: Repo, url: string): Promise<void> {
  const { core, plan, cut, stop } = parts
  const onHook = announce(core)
  const name = nameOf(repo)
  const place = placeOf(parts, repo, stop)
  const leaving: Promise<void>[] = []
  await keepWebhook(
    {
      name,
      async make() {
        const making = placeOf(parts, repo, cut)
        const hook = await registerHook(making, await wantedHook(parts, making, url))
        onHook({ repo: name, state: 'ready', hook })
        leaving.push(letGo(parts, making, hook))
        return plan.catchUp ? place.hooks.log?.(repo, hook.hook.id) : undefined
      },
      onFailure: (error, retries) => onHook({ repo: name, state: 'failed', error, retries }),
      onChange: (state) => onHook({ repo: name, ...state }),
      explain: (error) => explainLogError(error, place),
    },
    parts,
  )
  await Promise.all(leaving)
}

/** Removes hooks that were replaced, once what was queued for them has had its time. Does not reject. */
export async function letGo(
  { core, stop }: Pick<Parts, 'core' | 'stop'>,
  place: HookContext,
  hook: RegisteredHook,
): Promise<void> {
  const { former } = hook
  const { log, limits } = core
  if (former.length === 0) return
  const after = limits.hookLeaves
  const acceptsFormer = secretsOf(core).previous !== undefined
  const text = formerText(place, hook, { after, acceptsFormer })
  if (hook.hasNewSecret && !acceptsFormer) log.warn(text)
  else log.info(text)
  await removeFormer(place, former, { after, stop }).catch((thrown: unknown) =>
    log.warn(
      `Hook ${former.join(', ')} of ${nameOf(place.repo)}, which was replaced, could not be removed: ${toRelayError(thrown).message}. The next serve --hook removes it`,
    ),
  )
}

/** Makes the context in which the plan's user manages a repository's hooks. The signal cancels the calls. */
function placeOf({ core, owner: find, plan, warned }: Parts, repo: Repo, signal: AbortSignal): HookContext {
  const { host, tokens, log } = core
  const { user, isUserNamed: isNamed, login, command, onNoToken } = plan
  const token = async (): Promise<string> => {
    const owner = await find(user, { signal }).catch(onNoToken)
    const other = await tokens.otherAccount(owner, { isNamed })
    const text = other ? `${otherAccountText(owner, other)}. ${login} replaces it` : ''
    if (other && !warned.has(text)) log.warn(text)
    warned.add(text)
    return owner.accessToken
  }
  return { host, hooks: host.as(token, { signal }).hooks, saved: savedHooks(core), repo, login, command }
}

function savedHooks({ database, host }: Core): SavedHooks {
  return new SavedHooks(database.store, host)
}

/** Returns the hook to register, with the events and the address that the user chose for it before. */
async function wantedHook({ core }: Parts, { saved, repo }: HookContext, url: string): Promise<WantedHook> {
  const { chosen = false, url: own, events } = (await saved.get(repo)) ?? {}
  const hook = { url: (chosen && own) || url, secret: secretOf(core), events: events ?? undefined }
  return { settings: hook, permanent: false, chosen }
}

/** Removes the hook if relay serve made it, unless relay catches up from it. */
async function endHook(parts: Parts, repo: Repo, url: string): Promise<void> {
  const { core, plan, cut } = parts
  const onHook = announce(core)
  const name = nameOf(repo)
  try {
    const place = placeOf(parts, repo, cut)
    const saved = await place.saved.get(repo)
    if (!saved || saved.permanent) return
    if (plan.catchUp && place.hooks.log) return onHook({ repo: name, state: 'kept', url })
    const removed = await unregisterHook(place, url)
    if (removed.length > 0) onHook({ repo: name, state: 'removed', url })
  } catch (thrown) {
    onHook({ repo: name, state: 'left', error: toRelayError(thrown) })
  }
}

/** Returns the secret with which the code host signs now. */
function secretOf(core: Core): Secret {
  return secretsOf(core).current
}

function secretsOf({ sources, host, settings }: Core): WebhookSecrets {
  return sources.get(host.source)?.secrets ?? settings.webhookSecrets
}

function announce({ events }: Core): (hook: HookEvent) => void {
  return (hook) => events.emit({ type: 'hook', hook })
}

function nameOf({ owner, repo }: Repo): string {
  return `${owner}/${repo}`
}
