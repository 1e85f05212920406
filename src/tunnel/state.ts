import { z } from 'zod'
import type { Store } from '../store/contract.js'

/** How it stands with a tunnel. Times are milliseconds since 1970-01-01 UTC. */
export interface TunnelStatus {
  readonly state: 'connecting' | 'connected' | 'waiting'
  /** The channel: the address for the code host's webhook settings; null until there is one. */
  readonly url: string | null
  readonly since: number
  /** Why the connection was lost, or did not come about. */
  readonly why: string | null
  /** Number of the next attempt to connect again; 0 while `connected`. */
  readonly attempt: number
  /** When it is tried again, while `waiting`. */
  readonly retryAt: number | null
  /** What came of a message sent to oneself: `ok`, or why not; null while that is not known. */
  readonly roundTrip: string | null
}

const schema = z.object({
  v: z.literal(1),
  pid: z.int(),
  state: z.enum(['connecting', 'connected', 'waiting']),
  url: z.string().nullable(),
  since: z.number(),
  why: z.string().nullable(),
  attempt: z.int(),
  retryAt: z.number().nullable(),
  roundTrip: z.string().nullable(),
})

const KEY = 'tunnel'

/** Leaves it where other commands find it. `pid` is the process that has the tunnel. @throws RelayError `storage` */
export async function keepStatus(store: Store, pid: number, status: TunnelStatus): Promise<void> {
  await store.put(KEY, { v: 1, pid, ...status })
}

/** How it stands with the tunnel of that process; undefined where it has none. @throws RelayError `storage` */
export async function readStatus(store: Store, pid: number): Promise<TunnelStatus | undefined> {
  const row = schema.safeParse(await store.get(KEY)).data
  return row?.pid === pid ? row : undefined
}

/** @throws RelayError `storage` */
export async function forgetStatus(store: Store): Promise<void> {
  await store.delete(KEY)
}
