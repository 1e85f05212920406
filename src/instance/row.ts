import { createHmac, timingSafeEqual } from 'node:crypto'
import { isInstant, isPositive, isText, shape } from '../store/shape.js'

/** Where a profile's instance is written down. */
export const INSTANCE_KEY = 'instance'

/** The running `serve` of a profile. `key` proves at its address that it is the one that wrote the row. */
export interface InstanceRow {
  readonly v: 1
  readonly pid: number
  readonly url: string
  readonly provider: string
  readonly providerUrl: string
  /** Where browsers reach it: often the same as `url`. */
  readonly publicUrl: string
  /** 32 random bytes, base64url. Never sent anywhere. */
  readonly key: string
  /** ISO 8601 in UTC. */
  readonly startedAt: string
}

/** The row as it lies in the store; undefined for none and for what no relay of this version has written. */
export const parseRow = shape<InstanceRow>({
  v: (value) => value === 1,
  pid: isPositive,
  url: isText,
  provider: isText,
  providerUrl: isText,
  publicUrl: isText,
  key: isText,
  startedAt: isInstant,
})

/** The answer to a challenge that only the holder of the row's key can give: HMAC-SHA256, hex. */
export function prove(row: InstanceRow, challenge: string): string {
  return createHmac('sha256', Buffer.from(row.key, 'base64url')).update(challenge).digest('hex')
}

export function isProof(row: InstanceRow, challenge: string, answer = ''): boolean {
  const expected = Buffer.from(prove(row, challenge))
  const given = Buffer.from(answer)
  return given.length === expected.length && timingSafeEqual(given, expected)
}
