import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { isErrorKind, RelayError, type ErrorKind } from '../base/errors.js'
import type { Secret } from '../base/secret.js'
import type { ReadSource, StoreText } from '../base/settings.js'

// What the running instance of a profile and the other commands of the profile tell each other, and how each proves itself. Both sides are
// written against this file.

/**
 * Number of this protocol, in each record. It goes up with each change of a call, an answer or the record. Every version has the other
 * fields of {@link InstanceRecord} and answers the challenge of GET /health, so that a command of any version can say which process to restart.
 */
export const PROTOCOL = 2

/** What a command knows of a running instance before that has proved itself. */
export interface InstanceRecord {
  /** {@link PROTOCOL} of the program that wrote it. */
  readonly v: number
  readonly pid: number
  /** Where it listens. */
  readonly url: string
  readonly profile: string
  /** 32 random bytes, base64url, with which both sides prove themselves. Never sent anywhere. */
  readonly key: string
}

/** The record of an instance that starts now, with a key of its own. */
export function createInstanceRecord(own: Pick<InstanceRecord, 'pid' | 'url' | 'profile'>): InstanceRecord {
  return { v: PROTOCOL, ...own, key: randomBytes(32).toString('base64url') }
}

/** Answer of the call `status`: what only the running instance knows. Has no token; `madeSecret` is its only secret. */
export interface InstanceStatus {
  /** ISO 8601 in UTC. */
  readonly startedAt: string
  readonly provider: string
  readonly providerUrl: string
  /** Address for browsers, often the same as that of the record. */
  readonly publicUrl: string
  /** Its OAuth client, also used to renew tokens. Null: none. */
  readonly clientId: string | null
  /** Largest webhook body that it accepts, in bytes. */
  readonly maxBody: number
  readonly store: StoreText
  /** Whether it started its code host, the sandbox, itself. */
  readonly sandbox: boolean
  /** What alone names its code host, where that is a file of the folder that it was started in: no secret goes there. */
  readonly folderHost?: string | undefined
  /** {@link secretPrint} of its webhook secret. */
  readonly secretPrint: string
  /** The webhook secret, where the instance made one that no file holds: with a memory store. Null otherwise. */
  readonly madeSecret: string | null
  /** The repositories of `--hook`, as `owner/name`. */
  readonly hooks: readonly string[]
  /** Its sources besides the code host, without their secrets. */
  readonly sources: readonly Pick<ReadSource, 'name' | 'scheme' | 'ofFolder'>[]
  /** Its targets without their secrets, with the names that its routes give: they may come from its flags alone. */
  readonly targets: readonly { readonly id: string; readonly name?: string }[]
  /** Those of the code host and of its sources, while it receives through a tunnel. */
  readonly tunnels: readonly TunnelStatus[]
}

/** Status of a tunnel. Times are milliseconds since 1970-01-01 UTC. */
export interface TunnelStatus {
  /** Source of the deliveries that come through it. */
  readonly source: string
  readonly state: 'connecting' | 'connected' | 'waiting'
  /**
   * URL of the channel, for the sender's webhook settings. Null until there is a channel. Known while `waiting` too.
   */
  readonly url: string | null
  /** Time of the last change of `state`. */
  readonly since: number
  /** Reason why the connection was lost or failed. */
  readonly why: string | null
  /** Number of the next attempt to reconnect; 0 while `connected`. */
  readonly attempt: number
  /** Time of the next attempt, while `waiting`. */
  readonly retryAt: number | null
  /**
   * Result of the message that relay sends to itself on each connection: `ok`, or why it failed. Null while unknown.
   */
  readonly roundTrip: string | null
}

/** A running instance as the commands of other terminals see it: its record, and the status that it has proved. */
export type RunningInstance = InstanceRecord & InstanceStatus

// Proofs

/** HMAC-SHA256 of a text under the record's key, in hex: the answer to a challenge, or the proof of a call or of its answer. */
export function prove(record: Pick<InstanceRecord, 'key'>, text: string): string {
  return createHmac('sha256', Buffer.from(record.key, 'base64url')).update(text).digest('hex')
}

/**
 * Header with which a command proves that it reads the profile's data, {@link prove} of the body of its call, and with which the instance
 * proves its answer to that call, {@link prove} of {@link answerText}. No call, answer or fingerprint is a valid challenge for
 * GET /health, so no answer to a challenge is such a proof.
 */
export const PROOF_HEADER = 'X-Relay-Proof'

/** Whether a proof is the one expected; undefined: none is. */
export function sameProof(expected: string | undefined, given = ''): boolean {
  if (expected === undefined) return false
  const [own, other] = [Buffer.from(expected), Buffer.from(given)]
  return own.length === other.length && timingSafeEqual(own, other)
}

/** The body of a call. Its random number makes each call's proof another one, and with it the proof of the answer. */
export function callText(call: string, args: object): string {
  return JSON.stringify({ ...args, call, nonce: randomBytes(16).toString('base64url') })
}

/** What the instance proves of an answer: that it is to the call with this proof. The text of a stream is empty: it proves the connection. */
export function answerText(proofOfCall: string, status: number, text: string): string {
  return `answer to ${proofOfCall}: ${status} ${text}`
}

/** Hex digits of a fingerprint: enough to distinguish two secrets. */
const PRINT_DIGITS = 16

/**
 * A fingerprint of the webhook secret, to compare it with that of another terminal. Only who has the record's key can
 * compute it. Its text contains a space, so it is no answer to a challenge.
 */
export function secretPrint(record: Pick<InstanceRecord, 'key'>, secret: Secret): string {
  return prove(record, `webhook secret ${secret.reveal()}`).slice(0, PRINT_DIGITS)
}

// Failures

/** The answer of a call that failed. */
export interface Failure {
  readonly error: string
  readonly kind: ErrorKind
  /** Whole seconds. */
  readonly retryAfter?: number | undefined
}

export function failureOf({ clientMessage: error, kind, retryAfter }: RelayError): Failure {
  return { error, kind, retryAfter }
}

/** The same failure for the caller; undefined for an answer that is no failure of this protocol. */
export function errorOf({
  error,
  kind,
  retryAfter,
}: Partial<Record<keyof Failure, unknown>>): RelayError | undefined {
  if (typeof error !== 'string' || !isErrorKind(kind)) return undefined
  return new RelayError(kind, error, typeof retryAfter === 'number' ? { retryAfter } : {})
}

// The stream of the call `changes`

/** Something to read again. The stream never says what it is now: who follows reads the journal, the profile's data or `status`. */
export type Topic =
  /** Entries are new, have changed or are gone. */
  | 'journal'
  /** What `status` answers may have changed. */
  | 'status'
  /** A sign-in in a browser has ended. */
  | 'sign-in'
  /** A code of the inspector was used. */
  | 'inspector'

/** A line of the stream, as JSON. Without topics it is a heartbeat. */
export interface ChangeLine {
  readonly changed: readonly Topic[]
}

/** Between two lines. Far below the minute after which the service closes a connection without a byte. Milliseconds. */
export const HEARTBEAT_MS = 5_000
/** Three heartbeats without a byte: the instance stands still. Milliseconds. */
export const SILENCE_MS = 3 * HEARTBEAT_MS
