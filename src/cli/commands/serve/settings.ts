import { toRelayError } from '../../../base/errors.js'
import { Secret } from '../../../base/secret.js'
import type { ReadLiveSettings, ReadSettings, ReadSource } from '../../../base/settings.js'
import { checkRegistry, publishInstance } from '../../../instance/running.js'
import type { Reread } from '../../../serve/instance.js'
import type { SandboxedSettings, SettingsReader, StartOptions } from '../../../serve/start.js'
import { type Database, mayHaveData } from '../../../store/open.js'
import { makeProfileSecret } from '../../../webhook/profile-secret.js'
import { codeHostOf } from '../../code-host.js'
import type { Shell } from '../../command.js'
import { remember } from '../../profile.js'
import { clientOf, profileFolder, routeSettings, storeOf } from '../../settings/derived.js'
import { joinSettings, type Joined, type Parts } from '../../settings/join.js'
import { joinStored } from '../../stored-setup.js'

// The settings of a service, made of those of the command line, and how other commands find it.

interface ServiceOptions {
  readonly sandbox: boolean
  readonly inspect: boolean
  /** The sources that are received from, with their secrets. */
  readonly readSources: (joined: Joined, data: Database) => Promise<readonly ReadSource[]>
  /** Reads the same settings again, and says what of a change needs a restart, or is probably not meant. */
  readonly rereadParts: () => Promise<RereadParts>
}

/** Settings that were read again. */
export interface RereadParts extends Omit<Reread, 'settings' | 'warnings'> {
  readonly parts: Parts
  /** What is valid in them and probably not meant, at a code host. Called once the sources are read, too. */
  readonly warnings: (provider: string) => Reread['warnings']
}

/**
 * The settings of a service. What the profile's data completes is known once the service has the profile: the webhook secret that it makes,
 * what relay setup stored, and the sources.
 * @throws RelayError `settings`, also from `complete`; `storage` from `complete`
 */
export function serviceSettings(parts: Parts, options: ServiceOptions): SettingsReader {
  const { sandbox, rereadParts } = options
  const first = joinSettings(parts)
  const { host, port, maxBody } = first.values
  const place = { folder: profileFolder(first.values), store: storeOf(first.values) }
  const complete = (joined: Joined, live: ReadLiveSettings): ReadSettings | SandboxedSettings => {
    const fixed = { ...fixedSettings(joined, options.inspect), ...place, host, port, maxBody, ...live }
    return sandbox
      ? { ...fixed, sandbox: { port: first.values.sandboxPort } }
      : { ...fixed, ...codeHostOf(joined) }
  }
  // A mistake is found before a profile is made for it.
  if (!mayHaveData(place.store, place.folder))
    complete(first, { webhookSecrets: { current: new Secret('') }, routes: routeSettings(first) })
  return {
    ...place,
    host,
    port,
    maxBody,
    async complete(database) {
      // A sandbox makes its own client.
      const joined = sandbox ? first : await joinStored(parts, database.secrets)
      return complete(joined, await readLive(joined, database, options))
    },
    async reread(database, { provider }) {
      const { parts: now, restart, warnings } = await rereadParts()
      const settings = await readLive(joinSettings(now), database, options)
      return { settings, restart, warnings: warnings(provider) }
    },
  }
}

/** What a running service reads again, too. It makes the webhook secret if there is none. */
async function readLive(
  joined: Joined,
  database: Database,
  { readSources }: Pick<ServiceOptions, 'readSources'>,
): Promise<ReadLiveSettings> {
  const { webhookSecret: given, webhookSecretPrevious: previous } = joined.values
  const sources = await readSources(joined, database)
  const current = given ? new Secret(given) : await makeProfileSecret(database.store)
  const webhookSecrets = { current, previous: previous ? new Secret(previous) : undefined }
  return { webhookSecrets, sources, routes: routeSettings(joined) }
}

/** What stays as it is while a service runs, but for its place and its code host. */
function fixedSettings({ values }: Joined, inspect: boolean) {
  return {
    profile: values.profile,
    oauthClient: clientOf(values),
    allowedHosts: values.allowHost ?? [],
    inspect,
    inspectHosts: values.inspectHost ?? [],
    metrics: values.metrics === 'on',
    publicUrl: values.publicUrl,
    baseUrl: values.baseUrl,
    tokenTtl: values.tokenTtl,
    concurrency: values.concurrency,
    onDuplicate: values.onDuplicate,
    keep: values.keep,
    keepMax: values.keepMax,
    tunnel: values.tunnel,
  }
}

/**
 * Makes a service that this process starts known to the commands of other terminals while it runs, and has its profile remember how it
 * was used. With a memory store, nothing but the registration is written. It warns if this fails.
 * @throws RelayError `settings` where another user can change what says which instances run
 */
export function publication({ out }: Shell, loaded: Joined): Pick<StartOptions, 'onTaken' | 'shown'> {
  const { values, origins } = loaded
  const { store, home } = values
  if (store !== 'memory') checkRegistry(home)
  return {
    // No other place has the secret that is made with a memory store.
    shown: { folderHost: loaded.folderHost, hasMadeSecret: !origins.webhookSecret },
    onTaken({ record, settings, sandbox }) {
      // A full or read-only disk stops no start: what is stored is forwarded.
      try {
        remember(loaded, settings, sandbox !== undefined)
        return publishInstance(home, record)
      } catch (error) {
        out.log.warn(`other terminals cannot find this relay: ${toRelayError(error).message}`)
        return undefined
      }
    },
  }
}
