import { randomBytes } from 'node:crypto'
import { sleep, type Cancellable } from '../base/abort.js'
import { RelayError } from '../base/errors.js'
import { systemClock, type Clock } from '../base/time.js'
import type { Expectation, Json, Store } from '../store/contract.js'
import { isAlive, isProven } from './probe.js'
import { INSTANCE_KEY, parseInstanceRecord, prove, type InstanceRecord } from './record.js'

export type { InstanceRecord } from './record.js'

/** A profile that this process owns until it releases it. */
export interface Instance {
  readonly record: InstanceRecord
  /** What the store holds as long as the profile is owned. */
  readonly stored: Expectation
  /** Answers a challenge, in hex: proof that this process is the instance. */
  readonly prove: (challenge: string) => string
  /** Releases the profile. A record that another process has replaced stays. */
  release(): Promise<void>
}

export type OwnFields = Omit<InstanceRecord, 'v' | 'key' | 'startedAt'>

export interface TakeOptions extends Cancellable {
  readonly clock?: Clock | undefined
}

/** Age below which an unproven record may be that of a starting instance, which does not answer yet. */
const START_LIMIT_MS = 5000
const POLL_MS = 100

/**
 * Makes this process the instance of this store's profile. It takes a record over when its process is gone, or when
 * its address does not answer or belongs to another program.
 * @throws RelayError `unavailable` when another instance serves the profile, with its process and address; `storage`.
 */
export async function takeInstance(
  store: Store,
  own: OwnFields,
  options: TakeOptions = {},
): Promise<Instance> {
  const { clock = systemClock, signal } = options
  for (;;) {
    const value = await store.get(INSTANCE_KEY)
    const rival = parseInstanceRecord(value)
    if (rival && isAlive(rival.pid)) {
      if (await isProven(rival, options)) throw alreadyServed(rival)
      if (rival.pid !== own.pid && isStarting(rival, clock())) {
        await sleep(POLL_MS, { signal })
        continue
      }
    }
    const record = createInstanceRecord(own, clock())
    const put = { type: 'put', key: INSTANCE_KEY, value: { ...record } } as const
    if (await store.write([put], [{ key: INSTANCE_KEY, value }])) return createInstance(store, record)
  }
}

/**
 * The error `unavailable` when another process has replaced the instance record that has this `key`; undefined otherwise.
 * `value` is what the profile's store has under {@link INSTANCE_KEY} now.
 */
export function ownershipLost({ key }: InstanceRecord, value: Json | undefined): RelayError | undefined {
  const owner = parseInstanceRecord(value)
  if (owner?.key === key) return undefined
  const who = owner ? `Process ${owner.pid} at ${owner.url}` : 'Another process'
  return new RelayError(
    'unavailable',
    `${who} has taken over this profile because this relay did not answer in time. This relay stops. To run both, choose another profile with --profile`,
  )
}

function createInstance(store: Store, record: ReturnType<typeof createInstanceRecord>): Instance {
  const stored = { key: INSTANCE_KEY, value: { ...record } }
  return {
    record,
    stored,
    prove: (challenge) => prove(record, challenge),
    async release() {
      await store.write([{ type: 'delete', key: INSTANCE_KEY }], [stored])
    },
  }
}

/** The record of an instance that starts now, with a key of its own. */
export function createInstanceRecord(own: OwnFields, now: number) {
  const { clientId = null, maxBody = null, ...others } = own
  const key = randomBytes(32).toString('base64url')
  const startedAt = new Date(now).toISOString()
  return { v: 1, ...others, clientId, maxBody, key, startedAt } as const
}

function isStarting({ startedAt }: InstanceRecord, now: number): boolean {
  const age = now - Date.parse(startedAt)
  return age >= 0 && age < START_LIMIT_MS
}

function alreadyServed({ pid, url }: InstanceRecord): RelayError {
  return new RelayError(
    'unavailable',
    `This profile is already served by process ${pid} at ${url}. Stop it, or choose another profile with --profile`,
  )
}
