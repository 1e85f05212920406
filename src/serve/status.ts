import type { ReadSettings, StoreText } from '../base/settings.js'
import { publicTargetId, publicTargets } from '../dispatch/routes.js'
import type { TargetStatus } from '../dispatch/target.js'
import type { Routing } from '../dispatch/routing.js'
import {
  type InstanceRecord,
  type InstanceStatus,
  type TargetActivity,
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
  readonly routing: Routing
  readonly targets: readonly TargetStatus[]
  readonly tunnels: Iterable<TunnelStatus>
  /** Repositories of `--hook`. */
  readonly hooks: readonly string[]
}

/** Activity of the target with this public id. */
function activityOf(id: string, targets: readonly TargetStatus[]): TargetActivity {
  const found = targets.find((target) => publicTargetId(target.id) === id)
  const { state = 'up', why, sending, heldBy } = found ?? {}
  return { state, ...(why !== undefined && { why }), ...(sending && { sending }), ...(heldBy && { heldBy }) }
}

export function instanceStatus(parts: StatusParts): InstanceStatus {
  const {
    record,
    settings,
    sandbox,
    routing,
    targets,
    tunnels,
    hooks,
    folderHost,
    hasMadeSecret = false,
  } = parts
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
    targets: publicTargets(routing).map((target) => ({ ...target, ...activityOf(target.id, targets) })),
    tunnels: [...tunnels],
    secretPrint: secretPrint(record, current),
    madeSecret: settings.store === 'memory' && hasMadeSecret ? current.reveal() : null,
  }
}
