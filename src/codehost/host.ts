import type { Command } from '../base/command-line.js'
import type { RelayError } from '../base/errors.js'
import type { Limits } from '../base/seams.js'
import type { Cancellable } from '../base/wait.js'
import type { Secret } from '../base/secret.js'
import type { OAuthClient, ProviderName } from '../base/settings.js'
import type { ResponseHead, SendOnce } from '../net/client.js'
import type { HostScheme } from '../senders/scheme.js'
import type { MergeMethod, Reaction } from './actions.js'

/** A repository. `owner` may have slashes between its parts (GitLab's groups). */
export interface Repo {
  readonly owner: string
  readonly repo: string
}

/** An issue or a pull request. */
export interface IssueRef extends Repo {
  readonly number: number
  /** Where issues and pull requests are numbered separately (GitLab), an issue's by default. */
  readonly kind?: 'issue' | 'pull'
}

/** A text that was sent as a comment. */
export interface CommentResult {
  /** Null if the text had only commands, which the code host carried out without a comment (GitLab). */
  readonly id: number | null
  /** Web address of the comment, else of what it was sent to. */
  readonly url: string
}

export interface CommentOptions {
  /** Sends also a text with commands for the code host (GitLab's quick actions). */
  readonly quickActions?: boolean | undefined
}

/** Reference to a comment; `url` is its web address. */
export interface CommentRef {
  readonly id: number
  readonly url: string
}

export interface Comment extends CommentRef {
  /** Undefined if the author's account no longer exists. */
  readonly author: string | undefined
  readonly body: string
}

export interface CommentTarget {
  /** `comment` belongs to an issue or pull request, `review` to a review. */
  readonly kind: 'comment' | 'review'
  readonly id: number
}

/** A check or a status of a commit. */
export interface CommitCheck {
  readonly name: string
  readonly state: 'succeeded' | 'pending' | 'failed'
  /** The code host's own word for its state, e.g. `timed_out`. */
  readonly says: string
}

/** The head of a pull request, with the newest of all its checks and statuses. */
export interface HeadChecks {
  readonly sha: string
  readonly checks: readonly CommitCheck[]
}

/** Information of the code host about a token. */
export interface TokenFacts {
  /** Account that the token belongs to. */
  readonly login: string
  /** Undefined if the code host does not name them (Gitea; GitHub's fine-grained tokens). */
  readonly scopes: readonly string[] | undefined
  /** Milliseconds since 1970-01-01 UTC. Undefined if it does not expire, or the code host does not say. */
  readonly expiresAt: number | undefined
}

export interface MergeOptions {
  readonly method?: MergeMethod | undefined
  readonly title?: string | undefined
  readonly message?: string | undefined
  /** Full commit id. Merges only if it is the head of the pull request, else `conflict`. */
  readonly sha?: string | undefined
  /** Lets the code host merge once the checks of the head have succeeded. `unprocessable` at GitHub. */
  readonly auto?: boolean | undefined
}

/** Result of a merge. `merged: false` means that the code host will merge later (checks pending). */
export type MergeResult =
  | { readonly merged: true; readonly sha: string }
  | { readonly merged: false; readonly sha: null }

export interface MergeWatch {
  /** Called with a reason that completes "not merged yet: …", when it first applies. */
  readonly onRetry?: (reason: string) => void
}

export interface ReactionResult {
  /** Null if the code host returns none (Gitea). */
  readonly id: number | null
  readonly content: Reaction
  /** False if the user had added this reaction before. */
  readonly created: boolean
}

/** A token, or a function that returns a valid one for each call, since it may have to be renewed during long work. */
export type TokenSource = string | (() => Promise<string>)

/** Properties that all code hosts of one kind share. */
export interface HostTraits {
  /** True if a repository may be in groups within groups, so that its owner has slashes (GitLab). */
  readonly nestedOwners: boolean
  /** True if issues and pull requests are numbered separately (GitLab). */
  readonly separateNumbers: boolean
  /** Possible paths of a comment's page, with its anchor. */
  readonly commentPaths: (on: IssueRef, id: number) => readonly string[]
  readonly webhook: HostScheme
  readonly words: HostWords
  /** Event that a test of a hook delivers. */
  readonly testEvent: string
  /** True if a test is sent only through a hook that gets its event (Gitea). */
  readonly testNeedsEvent: boolean
  /** Events for which its hooks can be registered. Undefined if it takes any name, or refuses unknown ones itself. */
  readonly hookEvents?: readonly string[]
  /**
   * Most deliveries that a user may have sent again in a minute, through all hooks of a repository. Undefined: as the
   * rate limit says.
   */
  readonly resendsPerMinute?: number
  /** Documented retention of the delivery log, in milliseconds. Infinity if none is documented. */
  readonly logPeriod: number
}

/** Settings for calls to a code host. */
export interface CallingOptions {
  readonly sendOnce: SendOnce
  /** Error with which every call rejects. Undefined: calls are allowed. */
  readonly refusal?: RelayError | undefined
  /** `codeHost` is for one call, headers and body together. */
  readonly limits: HostLimits
}

export type HostLimits = Pick<Limits, 'codeHost' | 'mergeDelay' | 'mergeTime'>

/** A kind of code host, independent of its address. */
export interface HostKind extends HostTraits {
  /** True if the web address may have a path. */
  readonly pathAllowed: boolean
  /** True if relay itself emulates it, and creates the OAuth client. */
  readonly isEmulated: boolean
  /** Opens no connection. The address is already validated. */
  readonly open: (url: URL, calling: CallingOptions) => OpenedHost
}

/** A code host at an address, as its own implementation returns it. */
export type OpenedHost = Omit<CodeHost, 'refusal' | 'source'>

/** The part of a {@link CodeHost} that issues tokens. */
export interface TokenHost {
  /** Error with which every call rejects. Undefined: calls are allowed. */
  readonly refusal?: RelayError | undefined
  /** Identifies the code host that issued a token; relay sends a token to no other. */
  readonly origin: string
  readonly oauth: OAuthServer
}

/** The part of a {@link CodeHost} that signs users in and calls it for them. */
export interface OAuthHost extends TokenHost {
  readonly name: ProviderName
  /** The web address without a trailing slash. */
  readonly url: string
  /** Address of its API, without a trailing slash. */
  readonly apiUrl: string
  /** The host as one user calls it. The signal cancels all of these calls. */
  as(token: TokenSource, options?: Cancellable): Account
}

/**
 * A code host at one address. A call is made once, sends the token to {@link url} or its API's host only, and rejects
 * with RelayError: `invalid_token` (401), `forbidden` (403), `not_found` (404: or no access), `conflict` (405, 409: not
 * mergeable, head changed), `gone` (410), `unprocessable` (422), `rate_limited` (403/429, with `retryAfter`),
 * `provider_failed` (5xx, no connection, malformed response), `provider_timeout`, `cancelled`. Messages quote the code
 * host's own on one line, and never a token.
 */
export interface CodeHost extends HostTraits, OAuthHost {
  /** Name of the source that receives its deliveries. */
  readonly source: string
  readonly probe: Probe
  /** Page on which a user registers an OAuth application by hand. */
  readonly registrationPage: string
  /** Registers an OAuth application with a user's token. Absent if the code host has no such call (GitHub). */
  readonly register?: (
    token: string,
    application: { readonly name: string; readonly redirectUri: string },
    options?: Cancellable,
  ) => Promise<OAuthClient>
  /** Absent if the code host has no Apps (Gitea). */
  readonly apps?: AppsApi
}

/** Calls of one user. */
export interface Account {
  facts(): Promise<TokenFacts>
  /** `bad_request` for a text with commands, unless the options allow them. */
  comment(on: IssueRef, body: string, options?: CommentOptions): Promise<CommentResult>
  /** Comments, oldest first. `unprocessable` after 2,500 of them. */
  comments(on: IssueRef): AsyncIterable<Comment>
  editComment(on: IssueRef, id: number, body: string, options?: CommentOptions): Promise<CommentRef>
  /** `unprocessable` beyond 2,500 checks or statuses. */
  headChecks(pull: IssueRef): Promise<HeadChecks>
  /**
   * Merges once. A merge that was refused only for the moment (the base branch moved, or the code host still checks) is
   * tried again for {@link HostLimits} `mergeTime`, with the same head; `onRetry` says why, before the first wait.
   */
  merge(pull: IssueRef, options?: MergeOptions, watch?: MergeWatch): Promise<MergeResult>
  /** Adds a reaction to the issue or pull request, or to one of its comments. */
  react(to: IssueRef, content: Reaction, comment?: CommentTarget): Promise<ReactionResult>
  readonly hooks: RepoHooks
  /**
   * Revokes the token for the application that it was issued to. Resolves also for an unknown token; `forbidden` for an
   * unknown application. Absent if only the user can revoke it (Gitea, GitHub's personal tokens), and for a token that
   * is not given as text.
   */
  readonly revoke?: (client: OAuthClient) => Promise<void>
}

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
  /** Set if the code host sends nothing through it, since deliveries failed (GitLab). It is then not active. */
  readonly paused?: HookPause | undefined
  readonly contentType: string
  /** Events in the code host's names. GitHub has `*` for every event; Gitea several names for one that was set. */
  readonly events: readonly string[]
  /** Undefined if the code host does not show it: Gitea, and servers like GitHub's that have shown none yet. */
  readonly hasSecret: boolean | undefined
  /** The receiver's last response. Undefined if nothing was sent, or the code host does not show it. */
  readonly lastResponse: { readonly code: number; readonly message: string } | undefined
  /** Task that the last change leaves to a person at the code host, such as settings to enter again. A clause. */
  readonly lost?: string
}

/** Why a code host sends nothing through a hook, until a test of the hook succeeds. */
export interface HookPause {
  /** When it tries again by itself, in milliseconds since 1970-01-01 UTC. Undefined: never. */
  readonly until: number | undefined
}

/** Calls about the hooks of repositories. `not_found` also for a token that may not manage them. */
export interface RepoHooks {
  list(repo: Repo): Promise<readonly RepoHook[]>
  create(repo: Repo, settings: HookSettings): Promise<RepoHook>
  /**
   * Changes a hook's settings and activates it. Gitea cannot change a secret: without `sameSecret` it makes another one,
   * and the caller retires the former. One that stays paused is as its test left it (GitLab).
   */
  change(
    repo: Repo,
    id: number,
    settings: HookSettings,
    options: { readonly sameSecret: boolean },
  ): Promise<RepoHook>
  remove(repo: Repo, id: number): Promise<void>
  /**
   * Makes a hook get nothing new, and still deliver what is queued for it, to `url`, until it is removed. Absent if the
   * code host never replaces one (GitHub).
   */
  readonly retire?: (repo: Repo, id: number, url: string) => Promise<void>
  /** Requests a delivery of `testEvent`. Gitea sends none for a repository without a commit. */
  test(repo: Repo, id: number): Promise<void>
  /** Absent if the code host has no log for programs (Gitea). */
  readonly log?: (repo: Repo, id: number) => DeliveryLog
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
  /** Status of the receiver's response, or the code host's own if there was none. */
  readonly statusCode: number
  readonly status: string
}

/** The delivery log of one hook, of a repository or an App. */
export interface DeliveryLog {
  /** Reads a page, newest first. `next` is the cursor of the next, older page; undefined after the last. */
  page(
    cursor?: string,
  ): Promise<{ readonly deliveries: readonly HookDelivery[]; readonly next: string | undefined }>
  /** Requests the same delivery again. It arrives later, or not at all. */
  redeliver(id: string): Promise<void>
  /**
   * Makes a paused hook send again, by a test. Resolves to the pause that has ended, to undefined if there was none. Absent if
   * the code host pauses none. @throws RelayError `unprocessable` if the test failed
   */
  readonly wake?: () => Promise<HookPause | undefined>
}

/** The authorization server's endpoints, without discovery. */
export interface OAuthServer {
  readonly authorizationEndpoint: string
  readonly tokenEndpoint: string
  /** RFC 8628 section 3.1; absent if the code host has no device flow (Gitea). */
  readonly deviceEndpoint?: string
  /** Required value of `iss` in the callback, if it is sent (RFC 9207). Undefined if the host's is unknown. */
  readonly issuer: string | undefined
  /** Smallest set of scopes that comment, merge and react need. */
  readonly scopes: readonly string[]
  /** True if a refresh token is exchanged with the redirect URI of its sign-in (GitLab). */
  readonly repeatsRedirectUri?: boolean
  /** True if a confidential client sends its secret also in the device flow (RFC 8628 section 3.1; GitLab). */
  readonly deviceTakesSecret?: boolean
  /** True if a refresh token is checked before the client that sends it, but a client before its code (GitLab). */
  readonly checksTokenFirst?: boolean
}

/** Identifies the software at an address, by a GET without a token. */
export interface Probe {
  readonly address: string
  /**
   * Returns the software, e.g. `Gitea 1.21.0`, or undefined for anything else. `json` is undefined if the response is
   * not JSON.
   */
  readonly recognise: (answer: ResponseHead & { readonly json: unknown }) => string | undefined
}

/** Texts that differ between code hosts. */
export interface HostWords {
  /** Name of its software at the beginning of a sentence: `GitHub`, `The sandbox`. */
  readonly label: string
  /** Scopes that a token needs to manage a repository's hooks, in the words of the documentation. */
  readonly hookScopes: string
  /** Rights that its user needs there. */
  readonly hookRole: string
  /** Explains in a sentence why a test of a hook may send nothing or not arrive. `url` is the code host's. */
  readonly testHint?: (hook: Repo & { readonly url: string; readonly id: number }) => string
  /** Fields of the form for an OAuth application. */
  readonly applicationForm: (application: {
    readonly name: string
    readonly callbackUrl: string
  }) => readonly (readonly [field: string, value: string])[]
  /** Token that may register an application by API, to complete "Access token". Absent if there is no such call. */
  readonly registrationToken?: string
  /** Instruction for the page of an OAuth application: a sentence that ends with "enter both here". */
  readonly registrationEnd: string
  /** Explains why nothing can be caught up from it, and what to do. Undefined if it has a log for programs. */
  readonly noLog?: { readonly why: string; readonly fix: string }
}

/** Identity of an App, which authenticates itself with tokens that its private key signs. */
export interface AppIdentity {
  readonly id: number
  /** Name of the App in addresses. */
  readonly slug: string
  /** PEM (PKCS #1). */
  readonly privateKey: Secret
}

/** Settings of an App that relay registers. */
export interface AppRequest {
  /** At most 34 characters; the user can change it. */
  readonly name: string
  /** Address to which the code host sends the browser with the code of the new App. */
  readonly redirectUrl: string
  readonly callbackUrl: string
  /** The App's webhook. Undefined: none. */
  readonly hook: { readonly url: string; readonly active: boolean } | undefined
}

/** A newly registered App. Its secrets are shown only once. */
export interface RegisteredApp {
  readonly app: AppIdentity
  readonly client: OAuthClient
  /** Undefined if the App has no webhook. */
  readonly webhookSecret: Secret | undefined
  /** Page on which a user chooses the repositories of the App. */
  readonly installUrl: string
}

/** Registration of an App by a manifest, and calls of an App. */
export interface AppsApi {
  /** Page that takes a manifest, of the user's account or of an organization. */
  page(organization: string | undefined): string
  /** The manifest as JSON. */
  manifest(request: AppRequest): string
  /** Exchanges the code at the end of the manifest flow. It works once. */
  convert(code: string): Promise<RegisteredApp>
  as(app: AppIdentity, options: AppOptions): AppAccount
}

/** How an App calls, with what completes the commands that its errors name. */
export interface AppOptions extends Cancellable {
  readonly command: Command
}

/**
 * Calls of an App as itself. They also reject, with advice, as `forbidden` for a removed key and `gone` for a deleted
 * App.
 */
export interface AppAccount {
  /**
   * Describes the App. `installations` is the number of accounts that have installed it; undefined at older GitHub
   * Enterprise Servers.
   */
  describe(): Promise<Pick<RegisteredApp, 'installUrl'> & { readonly installations: number | undefined }>
  isInstalled(repo: Repo): Promise<boolean>
  /** Reads the App's webhook. The code host shows only to people whether it is active. */
  hook(): Promise<Pick<RepoHook, 'url' | 'contentType' | 'hasSecret'>>
  /** Makes the App's webhook send JSON signed with this secret, to another address if one is given. */
  changeHook(settings: { readonly url?: string | undefined; readonly secret: Secret }): Promise<void>
  /** Log of the App's webhook, with the deliveries of all its repositories. */
  readonly log: DeliveryLog
}
