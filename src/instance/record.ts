import { createHmac, timingSafeEqual } from 'node:crypto'
import { isInstant, isPositive, isText, shape } from '../store/shape.js'

/** Store key of a profile's instance record. */
export const INSTANCE_KEY = 'instance'

/** The running `serve` of a profile. `key` lets it prove at `url` that it wrote this record. */
export interface InstanceRecord {
  readonly v: 1
  readonly pid: number
  readonly url: string
  readonly provider: string
  readonly providerUrl: string
  /** Address for browsers, often the same as `url`. */
  readonly publicUrl: string
  /** Its OAuth client, also used to renew tokens. Null: none. Undefined: written by an older relay. */
  readonly clientId?: string | null | undefined
  /** Largest webhook body that it accepts, in bytes. Null or undefined: not known. */
  readonly maxBody?: number | null | undefined
  /** 32 random bytes, base64url. Never sent anywhere. */
  readonly key: string
  /** ISO 8601 in UTC. */
  readonly startedAt: string
}

/** What each field must be. */
export const INSTANCE_FIELDS = {
  v: (value: unknown) => value === 1,
  pid: isPositive,
  url: isText,
  provider: isText,
  providerUrl: isText,
  publicUrl: isText,
  clientId: (value: unknown) => value === undefined || value === null || isText(value),
  maxBody: (value: unknown) => value === undefined || value === null || isPositive(value),
  key: isText,
  startedAt: isInstant,
}

/** Parses the stored record. Undefined when there is none, or it is not of this version. */
export const parseInstanceRecord = shape<InstanceRecord>(INSTANCE_FIELDS)

/** Answers a challenge with HMAC-SHA256 under the record's key, in hex. */
export function prove(record: InstanceRecord, challenge: string): string {
  return createHmac('sha256', Buffer.from(record.key, 'base64url')).update(challenge).digest('hex')
}

/**
 * Text that the header {@link PROOF_HEADER} authenticates: the sender of a renewal request has the record's key. It
 * contains a space, so it is no valid challenge for GET /health, and no answer to a challenge is such a proof.
 */
export function renewalText(userId: string): string {
  return `renew ${userId}`
}

/** The same for a revocation. */
export function revocationText(userId: string): string {
  return `revoke ${userId}`
}

/** The text that {@link PROOF_HEADER} authenticates for the list of refused requests. It contains a space, too. */
export const REFUSED_TEXT = 'read refused'

/** The text that {@link PROOF_HEADER} authenticates for the list of routes. It contains a space, too. */
export const ROUTES_TEXT = 'read routes'

/** The text that {@link PROOF_HEADER} authenticates for a code that opens the inspector. It contains a space, too. */
export const INSPECT_TEXT = 'open inspector'

export const PROOF_HEADER = 'X-Relay-Proof'

export function isProof(record: InstanceRecord, challenge: string, answer = ''): boolean {
  const expected = Buffer.from(prove(record, challenge))
  const given = Buffer.from(answer)
  return given.length === expected.length && timingSafeEqual(given, expected)
}
