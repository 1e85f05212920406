/**
 * What the inspector's server and its page exchange, by the routes of inspector.ts: types only, so that the page's bundle shares them.
 * Instants are milliseconds since 1970-01-01 UTC, and texts are for a person.
 *
 * Every GET needs the cookie; every POST but `api/open` also needs the session's key in the header `X-Relay-Key`. Requests of another
 * site's page are refused (403). Errors are `{"error": "<sentence>"}`. A stream resumes nothing: a page that connects reads what it shows.
 */
import type { Header } from '../http/headers.js'
import type { DeliveryStatus } from '../journal/filter.js'
import type { Attempt, Entry, ForwardStatus, Summary } from '../journal/types.js'
import type { RefusedRequest, RefusedCounts, RefusedKind } from '../webhook/refused.js'

export type { DeliveryStatus, ForwardStatus, Header, RefusedKind }

export interface OpenRequest {
  /** A one-time code, as a person may type it. */
  readonly code: string
}

export interface Opened {
  /** What every change needs. The page holds it in `sessionStorage` and sends it with changes only. */
  readonly key: string
}

/** The filters, as they stand in the page's address and that of `api/deliveries`. An empty value is none. */
export interface ListQuery {
  /** Matches as in `relay log --event`, separated by commas. */
  readonly event?: string
  /** `owner/name` */
  readonly repo?: string
  /** The name of a source. */
  readonly source?: string
  /** As `relay log --status`, but `failed` also finds what an attempt failed at and a later one brought. */
  readonly status?: DeliveryStatus
  /** Text in the payload, in any case of a to z. */
  readonly text?: string
  /** As in `relay log --since`: `1h`, an ISO instant, or milliseconds. `until` excludes its instant. */
  readonly since?: string
  readonly until?: string
  /** Only entries with a smaller number: the next page. */
  readonly before?: string
  /** 1 to 200; 50 without it. */
  readonly limit?: string
}

/** What became of a delivery at one target. */
export interface TargetMark {
  /** Short name, as in `relay log`. */
  readonly name: string
  readonly status: ForwardStatus
  /** Answers before the last one that asked for another attempt (408, 425, 429, 5xx); 0 where the first one succeeded. */
  readonly tries: number
  /** Set while it waits for a target that is down or no longer configured. */
  readonly down?: true
  /** The last answer, where there was one: `202`, or `exit 1` for a command. */
  readonly answer?: string
  /** Duration of the last attempt, in milliseconds. */
  readonly ms?: number
  /** Why it failed, for a person. */
  readonly reason?: string
}

/** All of a line of the list but its targets. */
export interface DeliveryHead extends Pick<
  Summary,
  'n' | 'receivedAt' | 'event' | 'action' | 'repo' | 'size' | 'duplicates'
> {
  /** The name of its source, unless that is the code host. */
  readonly source?: string
  /** Nothing proves it. */
  readonly unproved?: true
  /** `#12`, a branch or a tag; null where the payload names none. */
  readonly subject: string | null
  /** Why it was forwarded to no target, if not for want of a route: `ignored by push`. */
  readonly ignored?: string
  readonly viaTunnel?: true
  /** The number of the entry that it is an edited copy of. */
  readonly editedFrom?: number
}

export interface DeliveryLine extends DeliveryHead {
  readonly targets: readonly TargetMark[]
}

export interface DeliveryPage {
  /** Newest first. */
  readonly deliveries: readonly DeliveryLine[]
  /** The `before` of the next page; null at the end. */
  readonly next: number | null
  /** Set where relay has sources besides the code host, whose deliveries a list can be of. */
  readonly hasSources?: true
  /** Set where a search stopped at its limit of time: how many deliveries it read, and the `before` to continue from. */
  readonly stopped?: { readonly read: number; readonly before: number }
}

export interface AttemptLine extends Pick<Attempt, 'at' | 'outcome' | 'ms' | 'count' | 'error'> {
  /** `202`, or `exit 1` for a command; null without an answer. */
  readonly status: string | null
  /** Of the answer; empty where the target is a command. */
  readonly headers: readonly Header[]
  /** The start of the answer or output, at most 4,096 bytes, as text with invalid UTF-8 replaced. */
  readonly answer: string
  readonly answerIsText: boolean
}

/** A target that the delivery was forwarded to, with what happened there. */
export interface TargetDetail extends TargetMark {
  /** Opaque, for {@link ForwardRequest}; null where no route has this target any more. Changes when relay restarts. */
  readonly id: string | null
  /** The whole address or command, passwords hidden. */
  readonly label: string
  /** The match of its route; null without one. */
  readonly match: string | null
  /** Oldest first. */
  readonly attempts: readonly AttemptLine[]
}

/** All of a delivery but its body, which `…/body` has. */
export interface DeliveryDetail
  extends DeliveryHead, Pick<Entry, 'provider' | 'deliveryId' | 'hookId' | 'headers'> {
  /** In short, for the top: `verified with the current webhook secret`. */
  readonly verdict: string
  /** Sentences: how the signature was proved, what it covers, and how a tunnel's bytes were restored. */
  readonly proof: readonly string[]
  readonly restored: { readonly how: string; readonly unproved: boolean } | null
  /** What a target gets when it is forwarded again, a sentence. */
  readonly again: string
  /** Lower-case names of the headers of its source that relay makes for a copy, besides those of made-headers.ts. */
  readonly made: readonly string[]
  /** Whether a header names the event, so that a copy can have another. */
  readonly hasEventHeader: boolean
  /** `json` and `form` carry a JSON payload (a form in its field `payload`); `text` is other UTF-8, `bytes` is not UTF-8. */
  readonly bodyKind: 'json' | 'form' | 'text' | 'bytes'
  /** In the order of the routes. */
  readonly targets: readonly TargetDetail[]
  /** Where it can be forwarded again or sent edited: the routes that match it. */
  readonly routes: readonly { readonly id: string; readonly name: string; readonly label: string }[]
  /** The numbers of the entries before and after it; null at the ends. */
  readonly older: number | null
  readonly newer: number | null
}

export interface ForwardRequest {
  /** Ids of targets; all that match without it. */
  readonly targets?: readonly string[] | undefined
}

export interface SendRequest {
  /** The entry that was edited. */
  readonly from: number
  readonly event: string
  /** In place of the entry's own, without those that are made for each delivery (made-headers.ts); the entry's own without it. */
  readonly headers?: readonly Header[] | undefined
  /** The edited payload, sent as it is; a form stays a form around it. */
  readonly body: string
  /** A target's id; through intake to every matching route without it. */
  readonly target?: string | undefined
}

export interface Sent {
  /** The entry that was forwarded again, or made. */
  readonly n: number
}

export interface RefusedLine extends Omit<RefusedRequest, 'reason' | 'source' | 'headers' | 'body'> {
  /** Of another source than the code host, its name. */
  readonly source?: string
  readonly reason: string
}

export interface RefusedPage {
  /** Newest first. */
  readonly refused: readonly RefusedLine[]
  /** Since relay started, also of those that are no longer in the list. */
  readonly counts: RefusedCounts
}

export interface RefusedDetail extends RefusedLine {
  readonly headers: readonly Header[]
  /** The start of the body as text, with invalid UTF-8 replaced. */
  readonly body: string
  /** Whether `body` is less than the whole. */
  readonly isCut: boolean
  /** The verdict that `relay verify` would give, line by line. */
  readonly verdict: readonly string[]
}

export interface TargetState {
  readonly id: string
  readonly name: string
  readonly label: string
  readonly match: string
  /** `up`, `down`, `gone` (no longer configured), or `elsewhere` where another relay forwards. */
  readonly state: string
  readonly waiting: number
  readonly failed: number
  readonly since?: number
  readonly nextProbeAt?: number
}

export interface TunnelState {
  readonly source: string
  readonly state: string
  readonly payloadUrl: string | null
  readonly detail: string | null
}

/** A sender of deliveries besides the code host. */
export interface SourceState {
  readonly name: string
  /** As the settings say it: `stripe`, `none`. */
  readonly scheme: string
  /** Where it sends deliveries on this machine. */
  readonly url: string
}

export interface InstanceState {
  readonly profile: string
  /** Set where its code host is a sandbox of its own: it cannot be started without `--sandbox`. */
  readonly sandbox?: true
  readonly provider: string
  readonly url: string
  readonly startedAt: number
  readonly deliveries: number
  readonly targets: readonly TargetState[]
  readonly ignored: readonly string[]
  /** The code host's; null without a tunnel. */
  readonly tunnel: TunnelState | null
  readonly sources: readonly SourceState[]
  /** Those of the other sources, if there are any. */
  readonly sourceTunnels?: readonly TunnelState[]
  /** The hooks at the code host that this profile made or uses. */
  readonly hooks: readonly {
    readonly repo: string
    /** Where it sends deliveries; null where there is none yet. */
    readonly url: string | null
    /** Whether it stays when relay stops. */
    readonly permanent: boolean
    /** Why it could not be made, removed or caught up from. */
    readonly problem: string | null
  }[]
  /** Who is signed in: never a token. Null where the keychain did not answer. */
  readonly users:
    | readonly { readonly userId: string; readonly expiresAt: number; readonly origin: string }[]
    | null
}

export interface Timeline {
  /** 60 minutes, oldest first, the last one the current minute. `failed`: also what needed another attempt at a target. */
  readonly minutes: readonly Readonly<Record<'at' | 'received' | 'failed' | 'refused', number>>[]
}

/** What an open page is sent, at most ten times a second; `refused` comes first. */
export type LiveEvent =
  /** Entries that are new or have changed, oldest first; at most 200. */
  | { readonly type: 'lines'; readonly lines: readonly DeliveryLine[] }
  /** More than that has changed: read again what is shown. */
  | { readonly type: 'stale' }
  /** A request was refused; how many there were since relay started. */
  | { readonly type: 'refused'; readonly count: number }
  /** A target, the tunnel or a hook has changed: read the state again. */
  | { readonly type: 'state' }
  /** Retention removed the entries below this number. */
  | { readonly type: 'removed'; readonly below: number }
