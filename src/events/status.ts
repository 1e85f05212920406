import type { ReadSource } from '../base/settings.js'
import type { TargetStatus } from '../dispatch/target.js'
import type { TunnelStatus } from '../instance/protocol.js'

/** What a running instance does now, for its inspector and its metrics. */
export interface Activity {
  /** When it started. Milliseconds since 1970-01-01 UTC. */
  readonly startedAt: number
  /** Whether its code host is a sandbox of its own. */
  readonly sandbox: boolean
  /** Where deliveries go, with the number of deliveries that wait for each. */
  readonly targets: readonly TargetStatus[]
  /** One for each source, if there is a tunnel. */
  readonly tunnels: readonly TunnelStatus[]
  /** What is wrong with the hooks of `--hook` and the App's webhook, by repository or App. */
  readonly hookProblems: ReadonlyMap<string, string>
}

/** A source that an instance receives from. */
export interface ServedSource extends Pick<ReadSource, 'name' | 'scheme'> {
  /** The address to enter at the sender; null while its tunnel's channel is not made yet. */
  readonly address: string | null
}

/** What a running instance uses after it has read its settings again, as JSON. */
export interface Reloaded {
  /** Number of its routes. */
  readonly routes: number
  /** Its sources besides the code host. */
  readonly sources: readonly ServedSource[]
  /** Names of the sources that are new, or have another scheme or secret; the code host's for another webhook secret. */
  readonly changed: readonly string[]
  /** Names of the sources that it no longer receives from. */
  readonly removed: readonly string[]
  /** What has changed and counts only after a restart, and how that is done, for a person. */
  readonly restart: readonly string[]
  /** What is valid in them and probably not meant, for a person. */
  readonly warnings: readonly string[]
}
