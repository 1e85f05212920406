/**
 * Types that the inspector's server and its page exchange, by the routes of inspector.ts. Types only, so that the
 * page's bundle can import them. Times are milliseconds since 1970-01-01 UTC, and texts are for people.
 *
 * Every GET needs the cookie; every POST but `api/open` also needs the session's key in the header `X-Relay-Key`.
 * Requests from pages of other sites are refused (403). Errors are `{"error": "<sentence>"}`. A stream resumes nothing:
 * a page reads what it shows after each connection.
 */
import type { Header } from '../http/headers.js'
import type { DeliveryStatus } from '../journal/filter.js'
import type { Attempt, Entry, ForwardStatus, Summary, WaitReason } from '../journal/types.js'
import type { ListedKind, RefusedRequest, RefusedCounts } from '../webhook/refused.js'

export type { DeliveryStatus, ForwardStatus, Header, ListedKind }

export interface OpenRequest {
  /** One-time code, as a person may type it. */
  readonly code: string
}

export interface Opened {
  /** Key for changes. The page stores it in `sessionStorage` and sends it with changes only. */
  readonly key: string
}

/** Filters of the page's address and of `api/deliveries`. An empty value counts as none. */
export interface ListQuery {
  /** Matches as in `relay log --event`, separated by commas. */
  readonly event?: string
  /** `owner/name` */
  readonly repo?: string
  /** Name of a source. */
  readonly source?: string
  /** As `relay log --status`, except that `failed` also finds deliveries that succeeded after a failed attempt. */
  readonly status?: DeliveryStatus
  /** Text in the payload, ignoring the case of a to z. */
  readonly text?: string
  /** As in `relay log --since`: `1h`, an ISO instant, or milliseconds. `until` is exclusive. */
  readonly since?: string
  readonly until?: string
  /** Upper bound of the entries' numbers, exclusive: the next page. */
  readonly before?: string
  /** Number of entries, 1 to 200. Default: 50. */
  readonly limit?: string
}

/** Result of a delivery at one target. */
export interface TargetMark {
  /** Short name, as in `relay log`. */
  readonly name: string
  readonly status: ForwardStatus
  /**
   * Number of failed attempts before the last one that asked for another (408, 425, 429, 5xx); 0 if the first one
   * succeeded.
   */
  readonly tries: number
  /** Set while it waits for a target that is down or no longer configured. */
  readonly down?: true
  /** Why it waits, if it does. */
  readonly waitsFor?: WaitReason
  /** Last response, if any: `202`, or `exit 1` for a command. */
  readonly answer?: string
  /** Duration of the last attempt, in milliseconds. */
  readonly ms?: number
  /** Reason of the failure, for people. */
  readonly reason?: string
}

/** A line of the list without its targets. */
export interface DeliveryHead extends Pick<
  Summary,
  'n' | 'receivedAt' | 'event' | 'action' | 'repo' | 'size' | 'duplicates'
> {
  /** Name of its source, unless that is the code host. */
  readonly source?: string
  /** Set if nothing proves the delivery. */
  readonly unproved?: true
  /** `#12`, a branch or a tag. Null if the payload names none. */
  readonly subject: string | null
  /** Reason why it was forwarded to no target, other than a missing route: `ignored by push`. */
  readonly ignored?: string
  readonly viaTunnel?: true
  /** Number of the entry that it is an edited copy of. */
  readonly editedFrom?: number
}

export interface DeliveryLine extends DeliveryHead {
  readonly targets: readonly TargetMark[]
}

/** End of a page of the list. */
export interface PageEnd {
  /** Value of `before` for the next page. Null at the end. */
  readonly next: number | null
  /** Set if a search reached its time limit: the number of deliveries it read, and the `before` to continue from. */
  readonly stopped?: { readonly read: number; readonly before: number }
}

export interface DeliveryPage extends PageEnd {
  /** Deliveries, newest first. */
  readonly deliveries: readonly DeliveryLine[]
  /** Set if relay has sources besides the code host, so that a filter by source makes sense. */
  readonly hasSources?: true
}

export interface AttemptLine extends Pick<Attempt, 'at' | 'outcome' | 'ms' | 'count' | 'error'> {
  /** `202`, or `exit 1` for a command. Null without a response. */
  readonly status: string | null
  /** Headers of the response; empty for a command. */
  readonly headers: readonly Header[]
  /** Start of the response or output, at most 4,096 bytes, as text with invalid UTF-8 replaced. */
  readonly answer: string
  readonly answerIsText: boolean
}

/** A target of the delivery, with its attempts. */
export interface TargetDetail extends TargetMark {
  /** Opaque id for {@link ForwardRequest}. Null if no route has this target any more. Changes when relay restarts. */
  readonly id: string | null
  /** Full address or command, with passwords hidden. */
  readonly label: string
  /** Match of its route. Null without a route. */
  readonly match: string | null
  /** Attempts, oldest first. */
  readonly attempts: readonly AttemptLine[]
}

/** Proof of a delivery, and what a copy of it needs. */
export interface ProofDetail {
  /** Sentences about the proof of the signature, what it covers, and how a tunnel's bytes were restored. */
  readonly proof: readonly string[]
  /** Sentence about what a target receives when it is forwarded again. */
  readonly again: string
  /**
   * Lower-case names of further headers that relay makes for a copy: those of its source, besides those of
   * made-headers.ts.
   */
  readonly made: readonly string[]
  /** True if a header names the event, so that a copy can have another. */
  readonly hasEventHeader: boolean
}

/** A delivery without its body, which is at `…/body`. */
export interface DeliveryDetail
  extends DeliveryHead, ProofDetail, Pick<Entry, 'provider' | 'deliveryId' | 'hookId' | 'query' | 'headers'> {
  /** Short verdict for the top: `verified with the current webhook secret`. */
  readonly verdict: string
  readonly restored: { readonly how: string; readonly unproved: boolean } | null
  /**
   * Kind of the body. `json` and `form` carry a JSON payload (a form in its field `payload`); `text` is other UTF-8,
   * `bytes` is not UTF-8.
   */
  readonly bodyKind: 'json' | 'form' | 'text' | 'bytes'
  /** Format of a body that is not JSON, to follow the words "the body is": `gzip`, `XML`. Null for JSON and for other text. */
  readonly bodyFormat: string | null
  /** Targets in the order of the routes. */
  readonly targets: readonly TargetDetail[]
  /** Matching routes, to which it can be forwarded again or sent edited. */
  readonly routes: readonly { readonly id: string; readonly name: string; readonly label: string }[]
  /** Numbers of the next older and newer entry. Null at the ends. */
  readonly older: number | null
  readonly newer: number | null
}

export interface ForwardRequest {
  /** Ids of targets. Default: all that match. */
  readonly targets?: readonly string[] | undefined
}

export interface SendRequest {
  /** Number of the edited entry. */
  readonly from: number
  readonly event: string
  /**
   * Replacement of the entry's headers, except those that are made for each delivery (made-headers.ts). Default:
   * unchanged.
   */
  readonly headers?: readonly Header[] | undefined
  /** Edited payload, sent unchanged. If the entry is a form, it is put into a form. */
  readonly body: string
  /** Id of a target. Default: through intake, to every matching route. */
  readonly target?: string | undefined
}

/** Deliveries that can be triggered. */
export interface TriggerList {
  /** The code host first. */
  readonly sources: readonly {
    readonly source: string
    /** Scheme as in the settings: `stripe`. */
    readonly scheme: string
    /** Events with an example, as `relay trigger --list` has them: `push`, `issues.opened`. */
    readonly events: readonly string[]
  }[]
  /** Targets of the routes. */
  readonly targets: readonly { readonly id: string; readonly name: string; readonly label: string }[]
}

/** The example of an event. */
export interface TriggerExample {
  /** Payload for editing: the body, or the field `payload` of a form. */
  readonly text: string
}

export interface TriggerRequest {
  readonly source: string
  /** Event of {@link TriggerList}, whose example has the headers. Default: a payload of the user's own. */
  readonly example?: string | undefined
  /** Event of a payload of the user's own. Default: the one that the payload names. */
  readonly event?: string | undefined
  /** Payload, sent unchanged. If the example is a form, it is put into a form. */
  readonly body: string
  /** Id of a target. Default: every matching route. */
  readonly target?: string | undefined
}

/** A route to store in the profile. It forwards to an address: no page adds a command. */
export interface AddRouteRequest {
  readonly name?: string | undefined
  /** Events, separated by commas: `push`, `issues.opened`, `stripe/invoice.paid`. Default: all. */
  readonly match?: string | undefined
  /** Condition: `ref==refs/heads/main`. */
  readonly where?: string | undefined
  readonly forward: string
}

export interface RemoveRouteRequest {
  /** Id of its target. */
  readonly target: string
}

/** Choices of the dialogs. */
export interface Choices {
  /** First words of schemes that have a secret. */
  readonly schemes: readonly string[]
  /** Users who are signed in at the code host. Empty if the keychain did not respond. */
  readonly users: readonly string[]
}

export interface AddSourceRequest {
  /** Default: the first word of the scheme. */
  readonly name?: string | undefined
  /** `stripe`, `hmac header=X-Signature`, or the name of a source that gets another secret. */
  readonly scheme: string
  readonly secret: string
}

export interface AddHookRequest {
  /** `owner/name` */
  readonly repo: string
  /** User on whose behalf it is made. */
  readonly user: string
  /** Its address. Default: that of the tunnel, else the public one. */
  readonly url?: string | undefined
  /** Names of events, separated by commas. Default: every event. */
  readonly events?: string | undefined
}

export interface Added {
  /** Sentences about what was added or removed. Hold no secret. */
  readonly text: string
}

export interface Sent {
  /** Number of the entry that was forwarded again, or made. */
  readonly n: number
}

export interface RefusedLine extends Omit<RefusedRequest, 'reason' | 'source' | 'headers' | 'body'> {
  /** Name of its source, unless that is the code host. */
  readonly source?: string
  readonly reason: string
}

export interface RefusedPage {
  /** Refused requests, newest first. */
  readonly refused: readonly RefusedLine[]
  /** Counts since relay started, including requests no longer listed. */
  readonly counts: RefusedCounts
}

export interface RefusedDetail extends RefusedLine {
  readonly headers: readonly Header[]
  /** Start of the body as text, with invalid UTF-8 replaced. */
  readonly body: string
  /** True if `body` is not complete. */
  readonly isCut: boolean
  /** Verdict of `relay verify`, line by line. */
  readonly verdict: readonly string[]
}

export interface TargetState {
  readonly id: string
  readonly name: string
  readonly label: string
  readonly match: string
  /** `up`, `down`, `gone` (no longer configured), or `elsewhere` if another relay forwards. */
  readonly state: string
  readonly waiting: number
  readonly failed: number
  /** Set if the profile stores its route, so that it can be removed here. */
  readonly ofProfile?: true
  readonly since?: number
  readonly nextProbeAt?: number
}

export interface TunnelState {
  readonly source: string
  readonly state: string
  readonly payloadUrl: string | null
  readonly detail: string | null
}

/** A source of deliveries besides the code host. */
export interface SourceState {
  readonly name: string
  /** Scheme as in the settings: `stripe`, `none`. */
  readonly scheme: string
  /** Address on this machine to which it sends deliveries. */
  readonly url: string
}

export interface InstanceState {
  readonly profile: string
  /** Set if its code host is its own sandbox. It then cannot be started without `--sandbox`. */
  readonly sandbox?: true
  readonly provider: string
  readonly url: string
  readonly startedAt: number
  readonly deliveries: number
  readonly targets: readonly TargetState[]
  readonly ignored: readonly string[]
  /** Tunnel of the code host. Null without a tunnel. */
  readonly tunnel: TunnelState | null
  readonly sources: readonly SourceState[]
  /** Tunnels of the other sources, if any. */
  readonly sourceTunnels?: readonly TunnelState[]
  /** Hooks at the code host that this profile made or uses. */
  readonly hooks: readonly {
    readonly repo: string
    /** Address of its receiver. Null if there is none yet. */
    readonly url: string | null
    /** True if it stays when relay stops. */
    readonly permanent: boolean
    /** Reason why it could not be made, removed or caught up from. */
    readonly problem: string | null
  }[]
  /** Users who are signed in, without tokens. Null if the keychain did not respond. */
  readonly users:
    | readonly { readonly userId: string; readonly expiresAt: number; readonly origin: string }[]
    | null
}

export interface Timeline {
  /**
   * 60 minutes, oldest first, ending with the current one. `failed` includes deliveries that needed another attempt at
   * a target.
   */
  readonly minutes: readonly Readonly<Record<'at' | 'received' | 'failed' | 'refused', number>>[]
}

/** Events sent to an open page, at most ten times a second. `refused` is the first. */
export type LiveEvent =
  /** New or changed entries, oldest first; at most 200. */
  | { readonly type: 'lines'; readonly lines: readonly DeliveryLine[] }
  /** More entries changed: the page must read again what it shows. */
  | { readonly type: 'stale' }
  /** A request was refused. `count` is the total since relay started. */
  | { readonly type: 'refused'; readonly count: number }
  /** A target, the tunnel or a hook changed: the page must read the state again. */
  | { readonly type: 'state' }
  /** Retention removed the entries below this number. */
  | { readonly type: 'removed'; readonly below: number }
