import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { isErrorKind, RelayError, type ErrorKind } from '../base/errors.js'
import type { Secret } from '../base/secret.js'
import type { ReadSource, StoreText } from '../base/settings.js'

// Protocol between the running instance of a profile and the profile's other commands, and the proofs of both sides.
// Both sides use this file.

/**
 * Version of this protocol, in each record. It goes up with each change of a call, a response or the record. Every
 * version has the other fields of {@link InstanceRecord} and answers the challenge of GET /health, so that a command of
 * any version can say which process to restart.
 */
export const PROTOCOL = 5

/** The key of an instance, with which both sides prove themselves. */
interface ProofKey {
  /** 32 random bytes, base64url. Never sent anywhere. */
  readonly key: string
}

/** Facts about a running instance that a command reads from a file before it has any proof. */
export interface InstanceRecord extends ProofKey {
  /** {@link PROTOCOL} of the program that wrote it. */
  readonly v: number
  readonly pid: number
  /** Address at which it listens. */
  readonly url: string
  readonly profile: string
}

/** Makes the record of an instance that starts now, with a new key. */
export function createInstanceRecord(own: Omit<InstanceRecord, 'v' | 'key'>): InstanceRecord {
  return { v: PROTOCOL, ...own, key: randomBytes(32).toString('base64url') }
}

/**
 * Result of the call `status`: the state that only the running instance knows. Has no token; `madeSecret` is its only
 * secret.
 */
export interface InstanceStatus {
  /** ISO 8601 in UTC. */
  readonly startedAt: string
  readonly provider: string
  readonly providerUrl: string
  /** Address for browsers, often equal to the record's. */
  readonly publicUrl: string
  /** Client id of its OAuth client, which also renews tokens. Null without one. */
  readonly clientId: string | null
  /** Largest webhook body that it accepts, in bytes. */
  readonly maxBody: number
  readonly store: StoreText
  /** True if its code host is a sandbox that it started itself. */
  readonly sandbox: boolean
  /**
   * The setting that alone names its code host, if that is in a file of the folder in which it was started. No secret
   * is sent to such a host.
   */
  readonly folderHost?: string | undefined
  /** {@link secretPrint} of its webhook secret. */
  readonly secretPrint: string
  /** Webhook secret that the instance generated and no file holds, with a memory store. Null otherwise. */
  readonly madeSecret: string | null
  /** The repositories of `--hook`, as `owner/name`. */
  readonly hooks: readonly string[]
  /** Its sources besides the code host, without their secrets. */
  readonly sources: readonly Pick<ReadSource, 'name' | 'scheme' | 'ofFolder'>[]
  /** Its targets without their secrets, with their names from the routes, which may come from its flags alone. */
  readonly targets: readonly ({ readonly id: string; readonly name?: string } & TargetActivity)[]
  /** Tunnels of the code host and its sources. Empty unless it receives through tunnels. */
  readonly tunnels: readonly TunnelStatus[]
}

/** Activity of a target, as far as it says why deliveries wait. Times are milliseconds since 1970-01-01 UTC. */
export interface TargetActivity {
  /**
   * `gone`: no longer configured; its entries wait for it to return. `elsewhere`: another relay of the service
   * forwards.
   */
  readonly state: 'up' | 'down' | 'gone' | 'elsewhere'
  /** Reason why it is down. */
  readonly why?: string
  /** Entries that are being sent. */
  readonly sending?: readonly number[]
  /** Entry for which those behind it wait: until a time, or until it is answered. */
  readonly heldBy?: { readonly n: number; readonly at?: number }
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
  /** How the user ends that, where another attempt alone does not. */
  readonly fix?: string | undefined
  /** Number of the next attempt to reconnect; 0 while `connected`. */
  readonly attempt: number
  /** Time of the next attempt, while `waiting`. */
  readonly retryAt: number | null
  /**
   * Result of the message that relay sends to itself on each connection: `ok`, or why it failed. Null while unknown.
   */
  readonly roundTrip: string | null
}

/** A running instance as seen by the commands of other terminals: its record, and the status that it has proved. */
export type RunningInstance = InstanceRecord & InstanceStatus

// Proofs

/**
 * Computes the HMAC-SHA256 of a text under the record's key, in hex: the answer to a challenge, or the proof of a call
 * or of its response.
 */
export function prove({ key }: ProofKey, text: string): string {
  return createHmac('sha256', Buffer.from(key, 'base64url')).update(text).digest('hex')
}

/**
 * Header of the proofs. In a call it has {@link prove} of its body, which proves that the command can read the
 * profile's data. In the response it has {@link prove} of {@link answerText}. No call, response or fingerprint is a
 * valid challenge for GET /health, so no answer to a challenge is such a proof.
 */
export const PROOF_HEADER = 'X-Relay-Proof'

/** Compares a proof with the expected one in constant time. False if none is expected. */
export function sameProof(expected: string | undefined, given = ''): boolean {
  if (expected === undefined) return false
  const [own, other] = [Buffer.from(expected), Buffer.from(given)]
  return own.length === other.length && timingSafeEqual(own, other)
}

/** Formats the body of a call. Its random number makes the proofs of the call and of its response unique. */
export function callText(call: string, args: object): string {
  return JSON.stringify({ ...args, call, nonce: randomBytes(16).toString('base64url') })
}

/**
 * Formats the text that the instance proves with a response, which includes the proof of the call. For a stream `text`
 * is empty, so the proof covers the connection alone.
 */
export function answerText(proofOfCall: string, status: number, text: string): string {
  return `answer to ${proofOfCall}: ${status} ${text}`
}

/** Length of a fingerprint in hex digits: enough to distinguish two secrets. */
const PRINT_DIGITS = 16

/**
 * Fingerprint of the webhook secret, to compare it with that of another terminal. Only programs with the record's key
 * can compute it. Its text contains a space, so it is no answer to a challenge.
 */
export function secretPrint(record: ProofKey, secret: Secret): string {
  return prove(record, `webhook secret ${secret.reveal()}`).slice(0, PRINT_DIGITS)
}

// Failures

/** Response of a failed call. */
export interface Failure {
  readonly error: string
  readonly kind: ErrorKind
  /** Whole seconds. */
  readonly retryAfter?: number | undefined
}

export function failureOf({ clientMessage: error, kind, retryAfter }: RelayError): Failure {
  return { error, kind, retryAfter }
}

/** Makes the caller's error from a failure. Undefined for a response that is no failure of this protocol. */
export function errorOf({
  error,
  kind,
  retryAfter,
}: Partial<Record<keyof Failure, unknown>>): RelayError | undefined {
  if (typeof error !== 'string' || !isErrorKind(kind)) return undefined
  return new RelayError(kind, error, typeof retryAfter === 'number' ? { retryAfter } : {})
}

// The stream of the call `changes`

/**
 * Something to read again. The stream never has the new value: its reader asks the journal, the profile's data or
 * `status`.
 */
export type Topic =
  /** Entries were added, changed or removed. */
  | 'journal'
  /** The result of `status` may have changed. */
  | 'status'
  /** A sign-in in a browser ended. */
  | 'sign-in'
  /** A code of the inspector was used. */
  | 'inspector'

/** Line of the stream, as JSON. Without topics it is a heartbeat. */
export interface ChangeLine {
  readonly changed: readonly Topic[]
}

/** Time between two lines, far below the minute after which the service closes an idle connection. Milliseconds. */
export const HEARTBEAT_MS = 5_000
/** Silence after which the instance counts as hanging: three heartbeats. Milliseconds. */
export const SILENCE_MS = 3 * HEARTBEAT_MS
