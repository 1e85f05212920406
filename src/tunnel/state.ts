import { z } from 'zod'
import type { Clock } from '../base/time.js'
import type { Store } from '../store/kv.js'

/** Status of a tunnel. Times are milliseconds since 1970-01-01 UTC. */
export type TunnelStatus = Readonly<z.infer<typeof status>>

const status = z.object({
  state: z.enum(['connecting', 'connected', 'waiting']),
  /** The channel's URL, for the code host's webhook settings; null until there is a channel. Known while `waiting` too. */
  url: z.string().nullable(),
  /** When `state` last changed. */
  since: z.number(),
  /** Why the connection was lost or failed. */
  why: z.string().nullable(),
  /** Number of the next attempt to reconnect; 0 while `connected`. */
  attempt: z.int(),
  /** Time of the next attempt, while `waiting`. */
  retryAt: z.number().nullable(),
  /** Result of the message that relay sends to itself on each connection: `ok`, or why it failed; null while unknown. */
  roundTrip: z.string().nullable(),
})

const schema = status.extend({ v: z.literal(1), pid: z.int() })

const KEY = 'tunnel'

/** Saves the status for other commands. `pid` is the process that runs the tunnel. @throws RelayError `storage` */
export async function keepStatus(store: Store, pid: number, status: TunnelStatus): Promise<void> {
  await store.put(KEY, { v: 1, pid, ...status })
}

/** Status of that process's tunnel; undefined if it has none. @throws RelayError `storage` */
export async function readStatus(store: Store, pid: number): Promise<TunnelStatus | undefined> {
  const record = schema.safeParse(await store.get(KEY)).data
  return record?.pid === pid ? record : undefined
}

/** @throws RelayError `storage` */
export async function forgetStatus(store: Store): Promise<void> {
  await store.delete(KEY)
}

/** The status of a running tunnel. Each change reports the whole status. */
export interface Status {
  readonly change: (to: Partial<Omit<TunnelStatus, 'since'>>) => void
}

export function createStatus(clock: Clock, onStatus: (status: TunnelStatus) => void): Status {
  let status: TunnelStatus = { ...UNKNOWN, since: clock() }
  return {
    change(to) {
      const { state = status.state } = to
      status = { ...status, ...to, since: state === status.state ? status.since : clock() }
      onStatus(status)
    },
  }
}

const UNKNOWN: TunnelStatus = {
  state: 'connecting',
  url: null,
  since: 0,
  why: null,
  attempt: 0,
  retryAt: null,
  roundTrip: null,
}
