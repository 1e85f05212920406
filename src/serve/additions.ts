import { parsePrivateAddress } from '../base/address.js'
import { type ErrorKind, RelayError, toRelayError, isError } from '../base/errors.js'
import type { ProfileRoute, ReadSettings } from '../base/settings.js'
import { pathOf, shownSource } from '../base/source-names.js'
import type { Cancellable } from '../base/wait.js'
import {
  type HookContext,
  parseHookEvents,
  registerHook,
  type RegisteredHook,
  SavedHooks,
} from '../codehost/hooks.js'
import { parseRepo } from '../codehost/repo.js'
import type { Core } from '../core.js'
import { addProfileRoute, removeProfileRoute } from '../dispatch/profile-routes.js'
import type { Activity, Reloaded } from '../events/status.js'
import type { AddedSource, Additions, HookGiven } from '../inspector/parts.js'
import type { TokenOwner } from '../tokens/tokens.js'
import { chooseSource, readSourceSecret, storeSource, verifyTokenOf } from '../webhook/add-source.js'
import { letGo } from './hooks.js'

/** The running instance, as what is added changes it. */
interface ChangedInstance {
  readonly settings: ReadSettings
  /** Address that it listens on. */
  readonly url: string
  activity(): Activity
  owner(userId: string, options?: Cancellable): Promise<TokenOwner>
  reload(): Promise<Reloaded>
}

interface AdditionsOptions {
  readonly core: Core
  readonly instance: ChangedInstance
  /** False if a program embeds relay: it sets routes and sources itself. */
  readonly readsSettings: boolean
  /** Aborts when the instance stops. */
  readonly stopped: AbortSignal
}

/** Makes what the inspector adds to the profile and at the code host. */
export function createAdditions({ core, instance, readsSettings, stopped }: AdditionsOptions): Additions {
  const { database } = core
  const refuseProgram = (): void => {
    if (readsSettings) return
    throw new RelayError(
      'conflict',
      'The program that runs relay sets its routes and sources: add them there',
    )
  }
  /** @throws RelayError, with what was stored as it is */
  const reload = async (): Promise<Reloaded> => {
    try {
      return await instance.reload()
    } catch (cause) {
      // The reason may name files, which no answer does; the terminal has it.
      const why = toRelayError(cause).clientMessage
      throw new RelayError('conflict', `Stored, but not used yet: ${why}`, { cause })
    }
  }
  return {
    addRoute: (route: ProfileRoute) =>
      forPerson(async () => {
        refuseProgram()
        const { label } = await addProfileRoute(database.store, route, instance.settings.routes)
        await reload()
        return label
      }),
    removeRoute: (id: string) =>
      forPerson(async () => {
        refuseProgram()
        if (!(await removeProfileRoute(database.store, id)))
          throw new RelayError('not_found', 'The profile stores no such route any more')
        await reload()
      }),
    addSource: (text: string, secret: string) =>
      forPerson(async (): Promise<AddedSource> => {
        refuseProgram()
        const unsigned = (name: string): string =>
          `Start relay with ${core.command(`serve --source ${name}=none`)}`
        const known = instance.settings.sources ?? []
        const source = chooseSource(text, { known, place: 'Scheme', unsigned })
        const read = readSourceSecret(secret, 'The field Secret', source.scheme)
        const added = await storeSource(database.store, source, read)
        const { sources } = await reload()
        const address = sources.find(({ name }) => name === source.name)?.address ?? null
        return { ...added, name: source.name, address, verifyToken: verifyTokenOf(source.scheme, read) }
      }),
    addHook: (given: HookGiven) => forPerson(() => addHook({ core, instance, stopped }, given)),
  }
}

type HookParts = Pick<AdditionsOptions, 'core' | 'instance' | 'stopped'>

async function addHook(
  { core, instance, stopped }: HookParts,
  { repo: text, user, url: chosen, events }: HookGiven,
): Promise<RegisteredHook> {
  const { host, database, command, sources, settings, log } = core
  const repo = parseRepo(text, host)
  const tunnel = instance.activity().tunnels.find(({ source }) => shownSource(source) === undefined)?.url
  const { publicUrl = instance.url } = settings
  const url = chosen === undefined ? (tunnel ?? publicUrl + pathOf(host.source)) : parseGiven(chosen)
  const token = async (): Promise<string> => (await instance.owner(user, { signal: stopped })).accessToken
  const { hooks } = host.as(token, { signal: stopped })
  const saved = new SavedHooks(database.store, host)
  const place: HookContext = { host, hooks, saved, repo, login: command('login'), command }
  const { current: secret } = sources.get(host.source)?.secrets ?? settings.webhookSecrets
  const wanted = { url, secret, events: events === undefined ? undefined : parseHookEvents('Events', events) }
  const hook = await registerHook(place, { settings: wanted, permanent: true, chosen: chosen !== undefined })
  core.events.emit({ type: 'hook', hook: { repo: `${repo.owner}/${repo.repo}`, state: 'ready', hook } })
  // Runs in the background, since it waits for what is queued for the hooks that it replaces. It never rejects.
  letGo({ core, stop: stopped }, place, hook).catch((error: unknown) => log.error(String(error)))
  return hook
}

function parseGiven(text: string): string {
  try {
    return parsePrivateAddress(text).href
  } catch (cause) {
    const why = isError(cause) ? cause.message : 'invalid'
    throw new RelayError('usage', `Address: ${why}`, { cause })
  }
}

/** Kinds of errors of what a person gave, in the words of HTTP. Their messages name no file. */
const KINDS: Readonly<Partial<Record<ErrorKind, ErrorKind>>> = { usage: 'bad_request', settings: 'conflict' }

/** Runs what a person asked for. @throws RelayError as `work`, with the kinds of {@link KINDS} */
async function forPerson<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work()
  } catch (cause) {
    const kind = cause instanceof RelayError ? KINDS[cause.kind] : undefined
    if (!(cause instanceof RelayError) || kind === undefined) throw cause
    throw new RelayError(kind, cause.message, { cause })
  }
}
