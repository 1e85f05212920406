import type { Secret } from '../../base/secret.js'

/** Registration that makes the sandbox send deliveries: a repository's, an App's, or the sandbox's own. */
export interface Hook {
  readonly id: number
  /** Full name of the repository whose events it gets. Undefined: every repository. */
  readonly repo: string | undefined
  /** App whose webhook it is; without an installation it gets no events. */
  readonly app?: { readonly id: number; readonly installationId: number | undefined } | undefined
  readonly active: boolean
  /** Names of events; `*` is every event. */
  readonly events: readonly string[]
  readonly config: HookConfig
  readonly createdAt: string
  readonly updatedAt: string
}

export interface HookConfig {
  /** A function, since the sandbox's own hook is made before its receiver listens. */
  readonly url: () => string
  readonly contentType: ContentType
  /** Shown only: the sandbox always verifies certificates. */
  readonly insecureSsl: '0' | '1'
  /** Absent: deliveries are not signed. */
  readonly secret: Secret | undefined
}

/** `json`: the body is the payload. `form`: the payload is its only field, `payload`. */
export type ContentType = 'json' | 'form'

/** Whether the hook gets this event of this repository. */
export function subscribes(hook: Hook, event: string, repo: string): boolean {
  const isOurs = hook.repo === undefined || hook.repo === repo
  return hook.active && isOurs && (hook.events.includes('*') || hook.events.includes(event))
}
