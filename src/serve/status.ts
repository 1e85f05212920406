import type { ReadSettings, StoreText } from '../base/settings.js'
import { publicTargets, type Routing } from '../dispatch/routes.js'
import {
  type InstanceRecord,
  type InstanceStatus,
  secretPrint,
  type TunnelStatus,
} from '../instance/protocol.js'

/** Facts about an instance that only the command line that started it knows. */
export interface CommandLineFacts {
  /** The setting that alone names its code host, if that is in a file of the working folder. */
  readonly folderHost?: string | undefined
  /** True if relay generated the webhook secret and no file holds it. */
  readonly hasMadeSecret?: boolean | undefined
}

/** Parts of an instance's status. */
export interface StatusParts extends CommandLineFacts {
  readonly record: InstanceRecord
  readonly startedAt: number
  readonly settings: ReadSettings
  readonly sandbox: boolean
  readonly routing: Pick<Routing, 'routes'>
  readonly tunnels: Iterable<TunnelStatus>
  /** Repositories of `--hook`. */
  readonly hooks: readonly string[]
}

export function instanceStatus(parts: StatusParts): InstanceStatus {
  const { record, settings, sandbox, routing, tunnels, hooks, folderHost, hasMadeSecret = false } = parts
  const { provider, providerUrl, publicUrl = record.url, oauthClient, maxBody } = settings
  const { current } = settings.webhookSecrets
  return {
    startedAt: new Date(parts.startedAt).toISOString(),
    provider,
    providerUrl,
    publicUrl,
    clientId: oauthClient?.id ?? null,
    maxBody,
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- as text, a shared store is its address
    store: String(settings.store) as StoreText,
    sandbox,
    ...(settings.hostRefusal && folderHost !== undefined && { folderHost }),
    hooks,
    sources: (settings.sources ?? []).map(({ name, scheme, ofFolder }) => ({ name, scheme, ofFolder })),
    targets: publicTargets(routing),
    tunnels: [...tunnels],
    secretPrint: secretPrint(record, current),
    madeSecret: settings.store === 'memory' && hasMadeSecret ? current.reveal() : null,
  }
}
