import type { Cancellable } from '../base/abort.js'
import type { OAuthClient, ProviderName } from '../base/settings.js'

/** How a provider names and signs a delivery. Header names are lower-case. */
export interface WebhookScheme {
  readonly eventHeader: string
  readonly deliveryHeader: string
  /** Names the hook; with the delivery id it tells one delivery from another. Absent where the id is unique. */
  readonly hookHeader?: string
  /** What a form delivery's signature covers: the body as sent, or the JSON text inside `payload`. */
  readonly formSignature: 'body' | 'payload'
}

/** The authorization server's fixed facts; no discovery. */
export interface OAuthEndpoints {
  readonly authorizationEndpoint: string
  readonly tokenEndpoint: string
  /** What `iss` in the callback must be when it is sent (RFC 9207); undefined: the provider sends none we can trust. */
  readonly issuer: string | undefined
  /** The least that comment, merge and react need; joined by a space in the authorize address. */
  readonly scopes: readonly string[]
}

export interface RepoTarget {
  readonly owner: string
  readonly repo: string
}

export interface CommentInput extends RepoTarget {
  readonly issueNumber: number
  readonly body: string
}

export interface CommentResult {
  readonly id: number
  /** The comment's web address. */
  readonly url: string
}

export const MERGE_METHODS = ['merge', 'squash', 'rebase'] as const
export type MergeMethod = (typeof MERGE_METHODS)[number]

export interface MergeInput extends RepoTarget {
  readonly pullNumber: number
  readonly method?: MergeMethod | undefined
  readonly title?: string | undefined
  readonly message?: string | undefined
  /** Merge only if this is the head of the pull request, else `conflict`. */
  readonly sha?: string | undefined
}

/** `merged: false, sha: null`: the provider will merge it later (checks pending). */
export type MergeResult =
  | { readonly merged: true; readonly sha: string }
  | { readonly merged: false; readonly sha: null }

export const REACTIONS = ['+1', '-1', 'laugh', 'confused', 'heart', 'hooray', 'rocket', 'eyes'] as const
export type Reaction = (typeof REACTIONS)[number]

export interface ReactInput extends RepoTarget {
  readonly issueNumber: number
  readonly content: Reaction
  /** React to this comment of the issue instead. */
  readonly commentId?: number | undefined
  /** React to this review comment of the pull request instead. */
  readonly reviewCommentId?: number | undefined
}

export interface ReactResult {
  /** null where the provider gives none (Gitea). */
  readonly id: number | null
  readonly content: Reaction
  /** False when the user had reacted so before. */
  readonly created: boolean
}

/**
 * A code host, for one address. Every call sends the user's access token to {@link Provider.url}'s host or its
 * API host only, is made once (a write is never repeated), and rejects with RelayError:
 * `invalid_token` (401), `forbidden` (403), `not_found` (404: or no access), `conflict` (405, 409: not mergeable, head
 * changed), `gone` (410), `unprocessable` (422), `rate_limited` (403/429, with `retryAfter`), `provider_failed` (5xx, no
 * connection, reset, not what the protocol says), `provider_timeout` (no full answer in 25 s), `cancelled`.
 * Messages say what the provider said, control characters removed and cut to a line; never a token.
 */
export interface Provider {
  readonly name: ProviderName
  /** The web address without a trailing slash. */
  readonly url: string
  /** Identifies the code host a token came from; a token is sent to no other. */
  readonly origin: string
  readonly webhook: WebhookScheme
  readonly oauth: OAuthEndpoints
  whoAmI(token: string, options?: Cancellable): Promise<{ readonly login: string }>
  comment(token: string, input: CommentInput, options?: Cancellable): Promise<CommentResult>
  merge(token: string, input: MergeInput, options?: Cancellable): Promise<MergeResult>
  react(token: string, input: ReactInput, options?: Cancellable): Promise<ReactResult>
  /**
   * Revokes an access token, as the application it was given to; resolves also when the provider no longer knew it, and
   * rejects with `forbidden` when it does not know the application. Absent where a provider has no such call (Gitea).
   */
  revokeToken?(token: string, client: OAuthClient, options?: Cancellable): Promise<void>
}
