import type { Cancellable } from '../base/abort.js'
import type { Secret } from '../base/secret.js'
import type { RepoTarget } from './targets.js'

/** Settings that relay gives a hook. Its deliveries are JSON. */
export interface HookSettings {
  readonly url: string
  readonly secret: Secret
  /** Undefined: every event. */
  readonly events: readonly string[] | undefined
}

/** Hook of a repository, as the code host shows it. */
export interface RepoHook {
  readonly id: number
  readonly url: string
  readonly active: boolean
  readonly contentType: string
  /** As the code host names them; GitHub has `*` for every event. */
  readonly events: readonly string[]
  /** Undefined if the code host does not show it (Gitea). */
  readonly hasSecret: boolean | undefined
  /** What its receiver answered last; undefined if the code host does not show it (Gitea) or nothing was sent. */
  readonly lastResponse: { readonly code: number; readonly message: string } | undefined
}

/** Entry of a hook's delivery log. */
export interface HookDelivery {
  /** A number of up to 64 bits. */
  readonly id: string
  /** Delivery id, which redeliveries share. */
  readonly guid: string
  readonly event: string
  readonly action: string | null
  /** Milliseconds since 1970-01-01 UTC. */
  readonly deliveredAt: number
  readonly redelivery: boolean
  /** Of the receiver's answer, or the code host's own when there was none. */
  readonly statusCode: number
  readonly status: string
}

/** Part of a delivery log, newest first. */
export interface DeliveryPage {
  readonly deliveries: readonly HookDelivery[]
  /** Cursor of the next, older page; undefined after the last. */
  readonly next: string | undefined
}

/** Calls about the hooks of a repository. They reject like those of `Provider`; `not_found` also for a missing scope. */
export interface HookCalls {
  list(token: string, repo: RepoTarget, options?: Cancellable): Promise<readonly RepoHook[]>
  create(token: string, repo: RepoTarget, settings: HookSettings, options?: Cancellable): Promise<RepoHook>
  /** Gives a hook these settings and activates it. The result may have another id: Gitea's hook is replaced. */
  change(
    token: string,
    repo: RepoTarget,
    id: number,
    settings: HookSettings,
    options?: Cancellable,
  ): Promise<RepoHook>
  remove(token: string, repo: RepoTarget, id: number, options?: Cancellable): Promise<void>
  /** Asks for a delivery: a `ping` of GitHub; a `push` of Gitea, if the repository has a commit. */
  test(token: string, repo: RepoTarget, id: number, options?: Cancellable): Promise<void>
  /** Absent if the code host has no delivery log (Gitea). */
  readonly log?: DeliveryLogCalls
}

export interface DeliveryLogCalls {
  page(
    token: string,
    repo: RepoTarget,
    id: number,
    cursor: string | undefined,
    options?: Cancellable,
  ): Promise<DeliveryPage>
  /** Asks for the same delivery again. It arrives later, or not. */
  redeliver(
    token: string,
    repo: RepoTarget,
    id: number,
    deliveryId: string,
    options?: Cancellable,
  ): Promise<void>
}
