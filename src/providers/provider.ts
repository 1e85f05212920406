import type { Cancellable } from '../base/abort.js'
import type { Secret } from '../base/secret.js'
import type { OAuthClient, ProviderName } from '../base/settings.js'
import type { SendOnce } from '../net/client.js'
import type { EventActions } from './event-actions.js'
import type { EventTable } from './event-table.js'
import type { HookCalls } from './hooks.js'
import type { Registration } from './registration.js'
import type { Headed } from './rate-limit.js'
import type { IssueTarget, PullTarget, RepoTarget } from './targets.js'
import type { Templates } from './template.js'

export type { IssueTarget, PullTarget, RepoTarget }

/** The ways in which code hosts write JSON, by the names that `webhook/encodings.ts` gives them. */
export type JsonStyle = 'compact' | 'indented-go' | 'one-space-go'

/** How a sender names, writes and signs a delivery. Header names are lower-case. */
export interface WebhookScheme {
  /** The headers that hold the signature, and the form of their values. */
  readonly proof: Readonly<Record<string, RegExp>>
  /**
   * Whether this secret made the signature of these bytes. Takes constant time; an empty secret matches nothing. `header` gives the
   * value of a header that occurs exactly once.
   */
  readonly verify: (
    header: (name: string) => string | undefined,
    signed: Uint8Array,
    secret: Secret,
  ) => boolean
  readonly eventHeader: string
  readonly deliveryHeader: string
  /** Header with the hook's id, which with the delivery id identifies a delivery. Absent if the delivery id is unique. */
  readonly hookHeader?: string
  /** What a form delivery's signature covers: the body as sent, or the JSON text inside `payload`. */
  readonly formSignature: 'body' | 'payload'
  /** Further headers that hold the signature as bare hexadecimal digits. */
  readonly digestHeaders: readonly string[]
  /** Proves by its payload which event a delivery is of. */
  readonly events: EventTable
  /** Where a payload has what listings show of it; the first place with a usable value counts. */
  readonly summary: Readonly<Record<'action' | 'repo' | 'number', readonly string[]>>
  /** How the JSON of an event is written. */
  readonly style: (event: string) => JsonStyle
  /** The headers of a made-up delivery, unsigned, in the code host's spelling. */
  readonly headers: (event: string, deliveryId: string) => Record<string, string>
}

/** The header names that relay accepts from every code host; the code host's own wins. */
export const GENERIC_EVENT = 'x-provider-event'
export const GENERIC_DELIVERY = 'x-provider-delivery'

/** The authorization server's endpoints, without discovery. */
export interface OAuthEndpoints {
  readonly authorizationEndpoint: string
  readonly tokenEndpoint: string
  /** RFC 8628 section 3.1; absent if the provider has no device flow (Gitea). */
  readonly deviceEndpoint?: string
  /** Required value of `iss` in the callback, if it is sent (RFC 9207); undefined if the provider's is unknown. */
  readonly issuer: string | undefined
  /** The fewest scopes that comment, merge and react need; joined by a space in the authorize address. */
  readonly scopes: readonly string[]
}

/** The answer to a {@link HostProbe}. */
export interface ProbeAnswer extends Headed {
  /** Undefined if the body is not JSON. */
  readonly json: unknown
}

/** Finds out, without a token, which software answers at an address. */
export interface HostProbe {
  /** The address to GET. */
  readonly address: string
  /** The software, with its version if known, e.g. `Gitea 1.21.0`; undefined for anything else. */
  readonly recognise: (answer: ProbeAnswer) => string | undefined
}

/** A checked address, and how to call it. */
export interface HostOptions {
  readonly url: URL
  readonly sendOnce: SendOnce
  /** Milliseconds for one call, headers and body together. */
  readonly timeLimit: number
}

/** A kind of code host, independent of its address. Each provider's folder exports one. */
export interface CodeHost {
  /** The default web address. */
  readonly defaultUrl: string | undefined
  /** Whether the web address may have a path. */
  readonly pathAllowed: boolean
  readonly webhook: WebhookScheme
  readonly actions: EventActions
  readonly templates: Templates
  /** The code host at this address. Opens no connection. */
  readonly open: (options: HostOptions) => Provider
}

export interface CommentInput extends IssueTarget {
  readonly body: string
}

export interface CommentResult {
  readonly id: number
  /** The comment's web address. */
  readonly url: string
}

/** A comment that is already there. */
export interface Comment extends CommentResult {
  /** The name of the account that wrote it; undefined if that no longer exists. */
  readonly author: string | undefined
  readonly body: string
}

export interface EditInput extends RepoTarget {
  readonly commentId: number
  readonly body: string
}

/** A check or a status of a commit. */
export interface Check {
  readonly name: string
  readonly state: 'succeeded' | 'pending' | 'failed'
  /** The code host's own word for its state, e.g. `timed_out`. */
  readonly says: string
}

/** The head of a pull request, with the newest of all its checks and statuses. */
export interface HeadChecks {
  readonly sha: string
  readonly checks: readonly Check[]
}

/** What the code host says about a token. */
export interface TokenFacts {
  /** The account that it belongs to. */
  readonly login: string
  /** Undefined if the code host does not name them (Gitea; GitHub's fine-grained tokens). */
  readonly scopes: readonly string[] | undefined
  /** Milliseconds since 1970-01-01 UTC; undefined if it does not expire, or the code host does not say. */
  readonly expiresAt: number | undefined
}

export const MERGE_METHODS = ['merge', 'squash', 'rebase'] as const
export type MergeMethod = (typeof MERGE_METHODS)[number]

export interface MergeInput extends PullTarget {
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

export interface ReactInput extends IssueTarget {
  readonly content: Reaction
  /** React to this comment of the issue instead. */
  readonly commentId?: number | undefined
  /** React to this review comment of the pull request instead. */
  readonly reviewCommentId?: number | undefined
}

export interface ReactResult {
  /** Null if the provider returns none (Gitea). */
  readonly id: number | null
  readonly content: Reaction
  /** False if the user had added this reaction before. */
  readonly created: boolean
}

/**
 * A code host, for one address. Every call sends the user's access token to {@link Provider.url}'s host or its
 * API host only, is made once (a write is never repeated), and rejects with RelayError:
 * `invalid_token` (401), `forbidden` (403), `not_found` (404: or no access), `conflict` (405, 409: not mergeable, head
 * changed), `gone` (410), `unprocessable` (422), `rate_limited` (403/429, with `retryAfter`), `provider_failed` (5xx, no
 * connection, reset, malformed answer), `provider_timeout` (no complete answer within 25 s), `cancelled`.
 * Messages quote the code host's own, on one line without control characters; never a token.
 */
export interface Provider {
  readonly name: ProviderName
  /** The web address without a trailing slash. */
  readonly url: string
  /** Identifies the code host that issued a token; relay sends a token to no other. */
  readonly origin: string
  readonly webhook: WebhookScheme
  readonly oauth: OAuthEndpoints
  readonly probe: HostProbe
  whoAmI(token: string, options?: Cancellable): Promise<{ readonly login: string }>
  inspectToken(token: string, options?: Cancellable): Promise<TokenFacts>
  /**
   * Whether a user made this token in the settings of the code host, as its form shows. No application can revoke it.
   * Absent if the form shows nothing.
   */
  isPersonal?(token: string): boolean
  comment(token: string, input: CommentInput, options?: Cancellable): Promise<CommentResult>
  /** The comments, oldest first; `unprocessable` after 2,500 of them. */
  comments(token: string, input: IssueTarget, options?: Cancellable): AsyncIterable<Comment>
  editComment(token: string, input: EditInput, options?: Cancellable): Promise<CommentResult>
  /** The head and all its checks and statuses; `unprocessable` beyond 2,500 of one kind. */
  headChecks(token: string, input: PullTarget, options?: Cancellable): Promise<HeadChecks>
  merge(token: string, input: MergeInput, options?: Cancellable): Promise<MergeResult>
  react(token: string, input: ReactInput, options?: Cancellable): Promise<ReactResult>
  readonly hooks: HookCalls
  readonly registration: Registration
  /**
   * Revokes an access token on behalf of the application that it was issued to. Resolves even if the provider does not know the
   * token; rejects with `forbidden` if it does not know the application. Absent if the provider has no such call (Gitea).
   */
  revokeToken?(token: string, client: OAuthClient, options?: Cancellable): Promise<void>
}
