import type { ReadSource, Settings } from '../base/settings.js'
import type { TargetStatus } from '../dispatch/target.js'
import type { TunnelStatus } from '../tunnel/tunnel.js'

/** What a running instance shows of itself: as JSON, without any secret. */
export interface InstanceStatus {
  /** When it started. Milliseconds since 1970-01-01 UTC. */
  readonly startedAt: number
  /** The address that it listens on. */
  readonly url: string
  /** Whether its code host is a sandbox of its own. */
  readonly sandbox: boolean
  /** Whether it forwards, tunnels and keeps hooks; if not, another relay of the profile does. */
  readonly forwards: boolean
  /** Where deliveries go, with the number of deliveries that wait for each. */
  readonly targets: readonly TargetStatus[]
  /** One for each source, if there is a tunnel. */
  readonly tunnels: readonly TunnelStatus[]
  /** What is wrong with the hooks of `--hook` and the App's webhook, by repository or App. */
  readonly hookProblems: Readonly<Record<string, string>>
  /** The settings that commands compare with their own. */
  readonly settings: StatusSettings
}

/** Settings of a running instance, without their secrets. */
export interface StatusSettings extends Pick<
  Settings,
  'profile' | 'provider' | 'providerUrl' | 'maxBody' | 'inspect'
> {
  /** Address for browsers, often that of the listener. */
  readonly publicUrl: string
  /** Its OAuth client. Null: none. */
  readonly clientId: string | null
  /** Its sources besides the code host. */
  readonly sources: readonly SourceStatus[]
}

/** A source that an instance receives from. */
export interface SourceStatus extends Pick<ReadSource, 'name' | 'scheme' | 'ofFolder'> {
  /** The address to enter at the sender; null while its tunnel's channel is not made yet. */
  readonly address: string | null
}

/** What a running instance uses after it has read its settings again. */
export interface Reloaded {
  /** Number of its routes. */
  readonly routes: number
  readonly sources: readonly SourceStatus[]
  /** Names of the sources that are new, or have another scheme or secret; the code host's for another webhook secret. */
  readonly changed: readonly string[]
  /** Names of the sources that it no longer receives from. */
  readonly removed: readonly string[]
  /** What has changed and counts only after a restart, and how that is done, for a person. */
  readonly restart: readonly string[]
  /** What is valid in them and probably not meant, for a person. */
  readonly warnings: readonly string[]
}
