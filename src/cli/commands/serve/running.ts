import { pathOf } from '../../../base/source-names.js'
import packageJson from '../../../../package.json' with { type: 'json' }
import { isChannel, type ReadSettings } from '../../../base/settings.js'
import { labelOf } from '../../../dispatch/routes.js'
import { bracketed } from '../../../dispatch/where.js'
import type { ServedSource } from '../../../events/status.js'
import type { Instance } from '../../../serve/instance.js'

/** A relay that runs: its addresses, places and targets. */
export interface Running {
  readonly version: string
  readonly profile: string
  readonly url: string
  /** Address of its sandbox. Null if the settings name the code host. */
  readonly sandbox: string | null
  readonly provider: ReadSettings['provider']
  readonly providerUrl: string
  readonly hasInspector: boolean
  /** Address to enter at the code host. Null until its tunnel has a channel, and with a sandbox. */
  readonly payloadUrl: string | null
  readonly sources: readonly ServedSource[]
  readonly store: ReadSettings['store']
  readonly folder: string
  readonly targets: readonly RunningTarget[]
  /** Repositories whose hooks relay makes. */
  readonly hooked: readonly string[]
  /** User of this shell. Null if not signed in. */
  readonly signedIn: string | null
  /** True if users can sign in. */
  readonly hasClient: boolean
}

interface RunningTarget {
  readonly name: string
  /** Address, or command. */
  readonly place: string
  /** Deliveries that it receives, with the conditions: `push[ref==refs/heads/main]`. */
  readonly match: string
}

interface RunningParts {
  /** Payload URL of each source's tunnel, if known. */
  readonly tunnelUrls: ReadonlyMap<string, string>
  /** Returns the short name of a target. */
  readonly nameOf: (id: string) => string
  readonly hooked: readonly string[]
  readonly signedIn: string | undefined
}

/** Describes an instance that has started. */
export function runningOf(instance: Instance, parts: RunningParts): Running {
  const { url, settings, sandbox, core } = instance
  const { profile, provider, providerUrl, store, folder } = settings
  return {
    version: packageJson.version,
    profile,
    url,
    sandbox: sandbox?.url ?? null,
    provider,
    providerUrl,
    hasInspector: instance.inspector !== undefined,
    payloadUrl: payloadUrl(instance, parts) ?? null,
    sources: sourcesOf(instance, parts),
    store,
    folder,
    targets: core.routing.routes.map(({ id, match, where, target }) => {
      const place =
        target.kind === 'http' ? labelOf(`*=${target.url}`) : target.command.replaceAll(/\s+/g, ' ')
      return { name: parts.nameOf(id), place, match: match.text + bracketed(where) }
    }),
    hooked: parts.hooked,
    signedIn: parts.signedIn ?? null,
    hasClient: settings.oauthClient !== undefined,
  }
}

/** Lists the other sources, with the addresses to enter at the senders. */
function sourcesOf({ url, settings }: Instance, { tunnelUrls }: RunningParts): readonly ServedSource[] {
  const { sources = [], tunnel, publicUrl = url } = settings
  return sources.map(({ name, scheme }) => {
    const own = tunnel === undefined ? publicUrl + pathOf(name) : null
    return { name, scheme, address: tunnelUrls.get(name) ?? own }
  })
}

/** Returns the payload URL to enter at the code host. */
function payloadUrl({ url, settings }: Instance, { tunnelUrls }: RunningParts): string | undefined {
  const { provider, tunnel, publicUrl = url } = settings
  if (provider === 'sandbox') return undefined
  if (tunnel === undefined) return `${publicUrl}/webhook`
  return tunnelUrls.get(provider) ?? (isChannel(tunnel) ? tunnel : undefined)
}
