import { RelayError } from '../../../base/errors.js'
import { parsePrivateAddress } from '../../../base/web-address.js'
import { findOwnHooks, type HookPlace, type ReadPlace, SavedHooks } from '../../../codehost/hooks.js'
import { Journal } from '../../../journal/journal.js'
import type { Repo, RepoHook } from '../../../codehost/host.js'
import { readTunnel } from '../../../serve/tunnel.js'
import type { Context } from '../../context.js'
import { formatRepo, parseRepo } from '../../session/repo.js'
import { openSession, type Session } from '../../session/session.js'
import { startCommand } from '../../session/start-command.js'
import type { CommonFlags } from '../../settings/prepare.js'

export type AddressFlags = CommonFlags & { readonly url?: string }

/** What a command about the hooks of a repository needs. */
export interface HookSession extends AsyncDisposable {
  readonly session: Session
  readonly place: HookPlace
  readonly journal: Journal
  readonly repo: Repo
}

/** @throws RelayError as {@link parseRepo} and {@link openSession} */
export async function openHookSession(
  context: Context,
  flags: CommonFlags,
  text: string,
): Promise<HookSession> {
  const repo = parseRepo(text)
  const session = await openSession(context, flags)
  return {
    session,
    repo,
    journal: new Journal(session.sql),
    place: placeOf(session, repo, context.signal),
    [Symbol.asyncDispose]: () => session[Symbol.asyncDispose](),
  }
}

/** The hooks of a repository, as the signed-in user may manage them: the token is renewed if it has to be. */
export function placeOf(session: Session, repo: Repo, signal: AbortSignal): HookPlace {
  const { host, store } = session
  const token = async (): Promise<string> => (await session.owner({ signal })).accessToken
  return { host, hooks: host.as(token, { signal }).hooks, saved: new SavedHooks(store, host), repo }
}

/**
 * The address that the code host sends to: `--url`, else the running tunnel's, else the public one. Undefined if relay has none
 * that lasts, because it does not run.
 * @throws RelayError `usage` for an invalid `--url`
 */
export async function payloadAddress(
  { store, instance, settings }: Session,
  { url }: AddressFlags,
): Promise<string | undefined> {
  if (url !== undefined) return parseUrl(url)
  const tunnel = instance && (await readTunnel(store, instance.pid))?.url
  const base = instance?.publicUrl ?? settings.publicUrl
  return tunnel ?? (base === undefined ? undefined : `${base}/webhook`)
}

/** @throws RelayError `unavailable` that says how to get an address. */
export function requireAddress(address: string | undefined, { settings }: Session): string {
  if (address !== undefined) return address
  throw new RelayError(
    'unavailable',
    `No relay is running for profile ${settings.profile}, so the hook has no address. Start ${startCommand(settings)} --tunnel first, or give the address with --url`,
  )
}

function parseUrl(url: string): string {
  try {
    return parsePrivateAddress(url).href
  } catch (error) {
    throw new RelayError('usage', `--url: ${error instanceof Error ? error.message : 'is invalid'}`)
  }
}

/** The repository's hook that leads here. @throws RelayError `no_match` when there is none, with the next step */
export async function findOwnHook(session: Session, place: ReadPlace): Promise<RepoHook> {
  const [hook] = await findOwnHooks(place, await payloadAddress(session, {}))
  if (hook) return hook
  const name = formatRepo(place.repo)
  throw new RelayError(
    'no_match',
    `${name} has no hook that leads here. Create it with relay hook add ${name}`,
  )
}
