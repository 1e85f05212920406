import { toRelayError } from '../../../base/errors.js'
import { Secret } from '../../../base/secret.js'
import type { ReadLiveSettings, ReadSettings, ReadSource } from '../../../base/settings.js'
import { readProfileRoutes } from '../../../dispatch/profile-routes.js'
import { checkRegistry, publishInstance } from '../../../instance/running.js'
import type { Reread } from '../../../serve/instance.js'
import type { SandboxedSettings, SettingsReader, StartOptions } from '../../../serve/start.js'
import { newHostSecret } from '../../../senders/hosts.js'
import { type Database, mayHaveData } from '../../../store/open.js'
import { makeProfileSecret } from '../../../webhook/profile-secret.js'
import { codeHostOf } from '../../code-host.js'
import type { Shell } from '../../command.js'
import { remember } from '../../profile.js'
import { clientOf, profileFolder, routeSettings, storeOf } from '../../settings/derived.js'
import { joinSettings, type Joined, type Parts } from '../../settings/join.js'
import { joinStored } from '../../stored-setup.js'

// Settings of a service, made of those of the command line, and its registration for other commands.

interface ServiceOptions {
  readonly sandbox: boolean
  readonly inspect: boolean
  /** Reads the sources of deliveries, with their secrets. */
  readonly readSources: (joined: Joined, data: Database) => Promise<readonly ReadSource[]>
  /** Reads the settings again, with the changes that need a restart and those that are probably a mistake. */
  readonly rereadParts: () => Promise<RereadParts>
}

/** Settings that were read again. */
export interface RereadParts extends Omit<Reread, 'settings' | 'warnings'> {
  readonly parts: Parts
  /** Returns warnings about valid settings that are probably a mistake at a code host. Called after the sources are read. */
  readonly warnings: (provider: string) => Reread['warnings']
}

/**
 * Makes the reader of a service's settings. `complete` adds what needs the profile's data, which the service opens first:
 * the webhook secret, the client of relay setup, and the sources.
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
  // Finds a mistake before a profile is created.
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

/** Reads the settings that can change while a service runs. Creates the webhook secret if there is none. */
async function readLive(
  joined: Joined,
  database: Database,
  { readSources }: ServiceOptions,
): Promise<ReadLiveSettings> {
  const { webhookSecret: given, webhookSecretPrevious: previous, provider } = joined.values
  const sources = await readSources(joined, database)
  const current = given ? new Secret(given) : await makeProfileSecret(database.store, newHostSecret(provider))
  const webhookSecrets = { current, previous: previous ? new Secret(previous) : undefined }
  const profileRoutes = await readProfileRoutes(database.store)
  return { webhookSecrets, sources, routes: { ...routeSettings(joined), profileRoutes } }
}

/** Settings that cannot change while a service runs, without its place and its code host. */
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
    hubToken: values.hubToken === undefined ? undefined : new Secret(values.hubToken),
  }
}

/**
 * Registers a service of this process for the commands of other terminals while it runs, and saves its store and code host
 * in the profile. With a memory store, it writes only the registration. A failure is only a warning.
 * @throws RelayError `settings` if another user can change the registry of running instances
 */
export function publication({ out }: Shell, loaded: Joined): StartOptions {
  const { values, origins } = loaded
  const { store, home } = values
  if (store !== 'memory') checkRegistry(home)
  return {
    // With a memory store, only the service has the secret that it made.
    shown: { folderHost: loaded.folderHost, hasMadeSecret: !origins.webhookSecret },
    onTaken({ record, settings, sandbox }) {
      // A full or read-only disk does not prevent a start, since stored deliveries can still be forwarded.
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
