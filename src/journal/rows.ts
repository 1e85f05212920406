import { RelayError } from '../base/errors.js'
import type { Header } from '../http/headers.js'
import { isPositive, isText, shape } from '../store/shape.js'
import type { SqlRow, SqlValue } from '../store/sql.js'
import { CORRUPT, DatabaseFailure } from '../store/storage-error.js'
import type { Delivery, Restored, Summary, VerifiedBy } from './delivery.js'
import type { Attempt, Forward, Forwards, ForwardStatus, Outcome } from './forward.js'

/** A row of the table `delivery`. */
export interface DeliveryRow {
  readonly n: number
  readonly received_at: number
  readonly provider: string
  readonly event: string
  readonly action: string | null
  readonly repo: string | null
  readonly number: number | null
  readonly ref: string | null
  readonly delivery_id: string
  readonly hook_id: string
  readonly verified_by: string
  readonly restored: string | null
  readonly headers: string
  readonly size: number
  readonly duplicates: number
  /** Text or null. Damage here costs no delivery; absent in a database of an earlier version that is only read. */
  readonly ignored_by: unknown
}

/** A row of the table `forward`. */
export interface ForwardRow {
  readonly n: number
  readonly target: string
  /** The place of the target's route among the routes. */
  readonly position: number
  readonly status: string
  readonly tries: number
  readonly since: number
  readonly reason: string | null
}

/** A row of the table `attempt`. */
export interface AttemptRow {
  readonly target: string
  readonly at: number
  readonly outcome: string
  readonly status: number | null
  readonly ms: number
  readonly answer: Uint8Array
  readonly error: string | null
  readonly count: number
  /** Missing from a damaged database of version 1. */
  readonly headers?: string | null
}

/** A new row of `delivery`, by column, without its key and what ignores it. */
export function newRow(delivery: Delivery): Readonly<Record<string, SqlValue>> {
  const { provider, event, action, repo, number, ref = null, restored } = delivery
  return {
    received_at: delivery.receivedAt,
    provider,
    event,
    delivery_id: delivery.deliveryId,
    hook_id: delivery.hookId,
    headers: JSON.stringify(delivery.headers),
    verified_by: delivery.verifiedBy,
    action,
    repo,
    number,
    ref,
    restored: restored ? JSON.stringify(restored) : null,
    size: delivery.body.byteLength,
  }
}

const whole = (value: unknown): boolean => Number.isSafeInteger(value)
const textOrNull = (value: unknown): boolean => value === null || isText(value)

/** What SQLite takes for a row of a damaged page may hold anything. */
const deliveryRow = shape<DeliveryRow>({
  n: isPositive,
  received_at: whole,
  provider: isText,
  event: isText,
  action: textOrNull,
  repo: textOrNull,
  number: (value) => value === null || whole(value),
  ref: textOrNull,
  delivery_id: isText,
  hook_id: isText,
  verified_by: (value) => value === 'current' || value === 'previous',
  restored: textOrNull,
  headers: isText,
  size: whole,
  duplicates: whole,
  ignored_by: () => true,
})

const forwardRow = shape<ForwardRow>({
  n: isPositive,
  target: isText,
  position: whole,
  status: (value) => value === 'waiting' || value === 'succeeded' || value === 'failed',
  tries: whole,
  since: whole,
  reason: textOrNull,
})

/** @throws RelayError `storage` when the row is damaged. */
export function toDelivery(value: SqlRow): Omit<Summary, 'forwards'> {
  const row = deliveryRow(value)
  if (!row) throw damagedRow()
  const { n, provider, event, action, repo, number, ref, size, duplicates, ignored_by: ignoredBy } = row
  const restored = row.restored === null ? undefined : parse(row.restored, isRestored)
  return {
    n,
    receivedAt: row.received_at,
    provider,
    event,
    deliveryId: row.delivery_id,
    hookId: row.hook_id,
    headers: parse(row.headers, isHeaders),
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- checked
    verifiedBy: row.verified_by as VerifiedBy,
    action,
    repo,
    number,
    ...(ref !== null && { ref }),
    ...(restored && { restored }),
    size,
    duplicates,
    ...(typeof ignoredBy === 'string' && { ignoredBy }),
  }
}

/** @throws RelayError `storage` when the row is damaged. */
export function toForwardRow(value: SqlRow): ForwardRow {
  const row = forwardRow(value)
  if (!row) throw damagedRow()
  return row
}

/** @throws RelayError `storage` unless the bytes are the whole body of the delivery. */
export function toBody(bytes: unknown, { size }: Pick<Summary, 'size'>): Uint8Array {
  if (bytes instanceof Uint8Array && bytes.length === size) return bytes
  throw damagedRow()
}

/** For data that SQLite could read, but that is not what was written. */
export function damagedRow(): RelayError {
  const cause = new DatabaseFailure({ code: CORRUPT, message: 'a row is not as it was written' })
  return new RelayError('storage', 'The journal is damaged. Run relay doctor', { cause })
}

function parse<Value>(text: string, is: (value: unknown) => value is Value): Value {
  try {
    const value: unknown = JSON.parse(text)
    if (is(value)) return value
  } catch {
    // Not JSON.
  }
  throw damagedRow()
}

function isHeaders(value: unknown): value is readonly Header[] {
  return (
    Array.isArray(value) &&
    value.every((each) => Array.isArray(each) && each.length === 2 && each.every(isText))
  )
}

const isFlag = (value: unknown): boolean => value === undefined || value === true
const restoredShape = shape<Restored>({
  how: isText,
  sha256: isText,
  unproved: isFlag,
  repeatable: isFlag,
})
const isRestored = (value: unknown): value is Restored => restoredShape(value) !== undefined

export function toForward({ status, tries, since, reason }: ForwardRow): Forward {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- only this program writes the column
  return { status: status as ForwardStatus, tries, since, ...(reason !== null && { reason }) }
}

/** From entries, because a target's id is any text: `__proto__` would be lost as a key that is assigned. */
export function toForwards(rows: readonly ForwardRow[]): Forwards {
  return Object.fromEntries(rows.map((row) => [row.target, toForward(row)]))
}

export function toAttempt({ outcome, headers, ...row }: AttemptRow): Attempt {
  const { target, at, status, ms, answer, error, count } = row
  const given = typeof headers === 'string' ? { headers: parse(headers, isHeaders) } : {}
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- only this program writes the column
  return { target, at, outcome: outcome as Outcome, status, ms, answer, ...given, error, count }
}
