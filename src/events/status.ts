import type { NamedScheme } from '../base/settings.js'
import type { TargetStatus } from '../dispatch/target.js'
import type { TunnelStatus } from '../instance/protocol.js'

/** Current state of a running instance, for its inspector and its metrics. */
export interface Activity {
  /** Start time. Milliseconds since 1970-01-01 UTC. */
  readonly startedAt: number
  /** True if its code host is its own sandbox. */
  readonly sandbox: boolean
  /** Targets, with the number of deliveries that wait for each. */
  readonly targets: readonly TargetStatus[]
  /** One tunnel for each source; empty without tunnels. */
  readonly tunnels: readonly TunnelStatus[]
  /** Problems of the hooks of `--hook` and of the App's webhook, by repository or App. */
  readonly hookProblems: ReadonlyMap<string, string>
}

/** Which forwards of an entry a person sends again. */
export interface AgainOptions {
  /** Ids of the targets. Default: those of all matching routes. */
  readonly targets?: readonly string[] | undefined
  /** `failed`: only where it failed, or was never sent. `waiting`: only what waits. Default: `all`. */
  readonly which?: 'all' | 'failed' | 'waiting' | undefined
}

/** Result of forwarding an entry again. */
export interface Again {
  /** Start of its attempts, or just before. Milliseconds. */
  readonly since: number
  /** Ids of the targets that get it. */
  readonly targets: readonly string[]
  /** False if the relay has no route at all. */
  readonly hasRoutes: boolean
  /** Longest time limit of an attempt at one of these targets, in milliseconds. Null: without a limit. */
  readonly timeLimit: number | null
}

/** A source that an instance receives from. */
export interface ServedSource extends NamedScheme {
  /** Address to enter at the sender. Null until its tunnel has a channel. */
  readonly address: string | null
}

/** Result of reloading the settings of a running instance, as JSON. */
export interface Reloaded {
  /** Number of its routes. */
  readonly routes: number
  /** Its sources besides the code host. */
  readonly sources: readonly ServedSource[]
  /**
   * Names of new sources, and of those whose scheme or secret changed. The code host is included if its webhook secret
   * changed.
   */
  readonly changed: readonly string[]
  /** Names of sources that it no longer receives from. */
  readonly removed: readonly string[]
  /** Changes that need a restart, and the command for it. For people. */
  readonly restart: readonly string[]
  /** Valid settings that are probably a mistake. For people. */
  readonly warnings: readonly string[]
}
