/**
 * What the inspector's server and its pages exchange: types only, so that the browser's bundle shares them. All addresses are below
 * `/inspect`. Instants are milliseconds since 1970-01-01 UTC.
 *
 * | request | answer |
 * |---|---|
 * | `GET api/deliveries?…` | {@link DeliveryPage}; the query is a {@link ListQuery} |
 * | `GET api/deliveries/:n` | {@link DeliveryDetail} |
 * | `GET api/deliveries/:n/body` | the exact bytes, as a download |
 * | `GET api/deliveries/:n/fixture` | the fixture file, as a download |
 * | `GET api/deliveries/:n/curl` | a curl command to this relay, as text |
 * | `POST api/deliveries/:n/forward` | {@link ForwardRequest} → {@link Sent} |
 * | `POST api/send` | {@link SendRequest} → {@link Sent} |
 * | `GET api/refused` | {@link RefusedPage} |
 * | `GET api/refused/:id` | {@link RefusedDetail} |
 * | `GET api/state` | {@link InstanceState} |
 * | `GET api/timeline` | {@link Timeline} |
 * | `GET api/live` | server-sent events: {@link LiveEvent}, whose name is its `type`; resumes after `Last-Event-ID`, or `?after=<id>` |
 *
 * The stream begins with the instance's state and the counts of refused requests. `skipped` above 0 means that changes are missing from it: read the list again.
 *
 * Every GET needs the cookie; every POST needs the change key (`X-Relay-Key`) and a same-origin `Origin` as well. Errors are
 * `{"error": "<sentence>"}`. The key is in `sessionStorage` under `relay-inspect-key`, in the tab that a code opened; that tab then
 * goes to `/inspect/`, or to `/inspect/deliveries/:n`. What the browser loads is at `/inspect/assets/<name>`: the files of `dist/inspect`
 * that its `manifest.json` names (`{"page.js": "page-<hash>.js", …}`), each there compressed too (`.br`, `.gz`).
 */
import type { ForwardStatus, Outcome } from '../journal/types.js'
import type { DeliveryStatus } from '../journal/filter.js'
import type { RefusedKind } from '../webhook/refused.js'

/** The filters, as they stand in the address of the list and of `api/deliveries`. Every value is a string; empty is none. */
export interface ListQuery {
  /** Matches as in `relay log --event`, separated by commas. */
  readonly event?: string
  /** `owner/name` */
  readonly repo?: string
  /** `failed`, `waiting`, `succeeded` (every target), `none` (forwarded to no target) */
  readonly status?: DeliveryStatus
  /** Text in the payload, in any case. */
  readonly text?: string
  /** As in `relay log --since`: `1h`, an ISO instant, or milliseconds. */
  readonly since?: string
  /** The same; only what was received before it. */
  readonly until?: string
  /** Only entries with a smaller number: the next page. */
  readonly before?: string
  /** 1 to 200; 50 without it. */
  readonly limit?: string
}

export type { DeliveryStatus }

/** One target's mark in the list. */
export interface TargetMark {
  /** Short name, as in `relay log`. */
  readonly name: string
  readonly status: ForwardStatus
  /** Set while it waits for a target that is down. */
  readonly down?: true
  /** The last answer, where there was one: `202`, or `exit 1` for a command. */
  readonly answer?: string
  /** Duration of the last attempt, in milliseconds. */
  readonly ms?: number
  /** Why it failed, for a person. */
  readonly reason?: string
}

/** A line of the list. */
export interface DeliveryLine {
  readonly n: number
  readonly receivedAt: number
  readonly event: string
  readonly action: string | null
  readonly repo: string | null
  /** `#12`, a branch or a tag; null where the payload names none. */
  readonly subject: string | null
  /** Bytes of the body. */
  readonly size: number
  readonly duplicates: number
  readonly targets: readonly TargetMark[]
  /** Why it was forwarded to no target, if not for want of a route: `ignored by push`. */
  readonly ignored?: string
  readonly viaTunnel?: true
  /** The number of the entry that it is an edited copy of. */
  readonly editedFrom?: number
}

export interface DeliveryPage {
  /** Newest first. */
  readonly deliveries: readonly DeliveryLine[]
  /** The `before` of the next page; null at the end. */
  readonly next: number | null
  /** Set where a search for text stopped at its limit: how many deliveries it read, and the `before` to continue from. */
  readonly stopped?: { readonly read: number; readonly before: number }
}

export interface AttemptLine {
  readonly at: number
  readonly target: string
  readonly outcome: Outcome
  /** `202`, or `exit 1` for a command; null without an answer. */
  readonly status: string | null
  readonly ms: number
  /** How many attempts in a row this stands for. */
  readonly count: number
  readonly error: string | null
  /** The answer's headers, where it is an HTTP target. */
  readonly headers: readonly (readonly [name: string, value: string])[]
  /** The start of the answer or output, as text with invalid UTF-8 replaced. */
  readonly answer: string
  readonly answerIsText: boolean
}

export interface DeliveryDetail extends DeliveryLine {
  readonly provider: string
  readonly deliveryId: string
  readonly hookId: string
  readonly verifiedBy: 'current' | 'previous'
  /** Sentences: how the signature was proved, what it covers, and how a tunnel's bytes were restored. */
  readonly proof: readonly string[]
  readonly restored: { readonly how: string; readonly unproved: boolean } | null
  readonly headers: readonly (readonly [name: string, value: string])[]
  /** The body as text; null where it is not UTF-8. Complete: at most 25 MiB. */
  readonly body: string | null
  /** The JSON text that it carries: the body, or a form's payload; null where there is none. */
  readonly json: string | null
  readonly attempts: readonly AttemptLine[]
  /** Where it can be forwarded (again): the routes that match it. An id is opaque, and changes when relay restarts. */
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
  /** The entry that was edited; its headers are taken over but for the signature and the delivery id. */
  readonly from: number
  readonly event: string
  /** The edited JSON text, sent as it is. */
  readonly body: string
  /** A target's id; through intake to every matching route without it. */
  readonly target?: string | undefined
}

export interface Sent {
  /** The entry that was forwarded again, or made. */
  readonly n: number
}

export interface RefusedLine {
  readonly id: number
  readonly at: number
  readonly via: 'http' | 'tunnel'
  readonly status: number
  readonly kind: RefusedKind
  readonly event: string | null
  readonly deliveryId: string | null
  readonly size: number
  readonly reason: string
}

export interface RefusedPage {
  /** Newest first. */
  readonly refused: readonly RefusedLine[]
  readonly counts: Partial<Readonly<Record<RefusedKind, number>>>
}

export interface RefusedDetail extends RefusedLine {
  readonly headers: readonly (readonly [name: string, value: string])[]
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
  readonly state: string
  readonly waiting: number
  readonly succeeded: number
  readonly failed: number
  readonly since?: number
  readonly nextProbeAt?: number
}

export interface InstanceState {
  readonly profile: string
  readonly provider: string
  readonly url: string
  readonly startedAt: number
  readonly deliveries: number
  readonly targets: readonly TargetState[]
  readonly ignored: readonly string[]
  /** Null without a tunnel. */
  readonly tunnel: {
    readonly state: string
    readonly payloadUrl: string | null
    readonly detail: string | null
  } | null
  /** The hooks at the code host that this profile made or uses. */
  readonly hooks: readonly {
    readonly repo: string
    /** Where it sends deliveries; null where there is none yet. */
    readonly url: string | null
    /** Whether it stays when relay stops. */
    readonly permanent: boolean
    /** Why it could not be made, removed or caught up from, for a person. */
    readonly problem: string | null
  }[]
  /** Who is signed in: never a token. */
  readonly users: readonly { readonly userId: string; readonly expiresAt: number; readonly origin: string }[]
}

export interface Timeline {
  /** 60 minutes, oldest first, the last one the current minute. */
  readonly minutes: readonly {
    readonly at: number
    readonly received: number
    readonly failed: number
    readonly refused: number
  }[]
}

export type LiveEvent =
  /** New entries, oldest first, and entries whose targets or duplicates have changed. At most 10 events a second. */
  | { readonly type: 'deliveries'; readonly deliveries: readonly DeliveryLine[]; readonly skipped: number }
  | { readonly type: 'refused'; readonly counts: RefusedPage['counts'] }
  | { readonly type: 'state'; readonly state: InstanceState }
  /** Entries were removed by retention: those below this number are gone. */
  | { readonly type: 'removed'; readonly below: number }
