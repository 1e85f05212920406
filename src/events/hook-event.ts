import type { RelayError } from '../base/errors.js'
import type { CatchUpResult } from '../codehost/catch-up.js'
import type { RegisteredHook } from '../codehost/hooks.js'

/** Progress of catching up on missed deliveries of a webhook. */
export type CatchingUp =
  | { readonly state: 'missing'; readonly count: number }
  | { readonly state: 'caught up'; readonly result: CatchUpResult }
  | { readonly state: 'not caught up'; readonly error: RelayError; readonly retries: boolean }

/** Event of the App's webhook, or of the hook of a repository. */
export type HookEvent = RepoHookEvent | AppEvent

/** Event of a repository's hook. `repo` is `owner/name`. */
type RepoHookEvent = { readonly repo: string } & (
  | { readonly state: 'ready'; readonly hook: RegisteredHook }
  | { readonly state: 'failed'; readonly error: RelayError; readonly retries: boolean }
  | { readonly state: 'removed'; readonly url: string }
  | { readonly state: 'kept'; readonly url: string }
  | { readonly state: 'left'; readonly error: RelayError }
  | CatchingUp
)

/** Event of the webhook of the profile's App. `app` is its name in addresses. */
type AppEvent = { readonly app: string } & (
  | { readonly state: 'leads here'; readonly url: string; readonly repaired: readonly string[] }
  | { readonly state: 'failed'; readonly error: RelayError; readonly retries: boolean }
  | CatchingUp
)

/** Names the hook of an event for people. */
export function sourceOf(event: HookEvent): string {
  return 'app' in event ? `the App ${event.app}` : event.repo
}
