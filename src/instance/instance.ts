import { randomBytes } from 'node:crypto'
import { sleep, type Cancellable } from '../base/abort.js'
import { RelayError } from '../base/errors.js'
import { systemClock, type Clock } from '../base/time.js'
import type { Store } from '../store/contract.js'
import { isAlive, isProven, type ProbeOptions } from './probe.js'
import { INSTANCE_KEY, parseRow, prove, type InstanceRow } from './row.js'

export type { InstanceRow } from './row.js'

/** A profile that is ours until it is released. */
export interface Instance {
  readonly row: InstanceRow
  /** The answer to the challenge of one who asks whether this is the instance: hex. */
  readonly prove: (challenge: string) => string
  /** Gives the profile back. A row that is not ours any more is left alone. */
  release(): Promise<void>
}

export interface TakeOptions extends Cancellable {
  readonly clock?: Clock | undefined
}

/** An instance answers only once the profile is its own, so a row this young without proof may be one that is starting. */
const START_LIMIT = 5000
const POLL = 100

/**
 * Makes this process the instance of the profile whose store this is. A row is taken over when its process is gone, or
 * when its address is silent or served by someone else.
 * @throws RelayError `unavailable` when another instance serves the profile, naming its process and address; `storage`.
 */
export async function takeInstance(
  store: Store,
  own: Pick<InstanceRow, 'pid' | 'url' | 'provider' | 'providerUrl' | 'publicUrl'>,
  options: TakeOptions = {},
): Promise<Instance> {
  const { clock = systemClock, signal } = options
  for (;;) {
    const value = await store.get(INSTANCE_KEY)
    const rival = parseRow(value)
    if (rival && isAlive(rival.pid)) {
      if (await isProven(rival, options)) throw served(rival)
      if (rival.pid !== own.pid && isStarting(rival, clock())) {
        await sleep(POLL, { signal })
        continue
      }
    }
    const row = createRow(own, clock())
    const put = { type: 'put', key: INSTANCE_KEY, value: { ...row } } as const
    if (await store.write([put], [{ key: INSTANCE_KEY, value }])) return createInstance(store, row)
  }
}

/** The instance that serves the profile now, and has proved it; undefined when there is none. */
export async function findInstance(
  store: Store,
  options: ProbeOptions = {},
): Promise<InstanceRow | undefined> {
  const row = parseRow(await store.get(INSTANCE_KEY))
  return row && isAlive(row.pid) && (await isProven(row, options)) ? row : undefined
}

function createInstance(store: Store, row: InstanceRow): Instance {
  const ours = () => [{ key: INSTANCE_KEY, value: { ...row } }]
  return {
    row,
    prove: (challenge) => prove(row, challenge),
    async release() {
      await store.write([{ type: 'delete', key: INSTANCE_KEY }], ours())
    },
  }
}

function createRow(
  own: Pick<InstanceRow, 'pid' | 'url' | 'provider' | 'providerUrl' | 'publicUrl'>,
  now: number,
): InstanceRow {
  const { pid, url, provider, providerUrl, publicUrl } = own
  const key = randomBytes(32).toString('base64url')
  const startedAt = new Date(now).toISOString()
  return { v: 1, pid, url, provider, providerUrl, publicUrl, key, startedAt }
}

function isStarting({ startedAt }: InstanceRow, now: number): boolean {
  const age = now - Date.parse(startedAt)
  return age >= 0 && age < START_LIMIT
}

function served({ pid, url }: InstanceRow): RelayError {
  return new RelayError(
    'unavailable',
    `This profile is already served by process ${pid} at ${url}: stop that one, or name another with --profile`,
  )
}
