import { z } from 'zod'
import type { Log } from '../base/log.js'
import type { Store } from '../store/kv.js'

const KEY = 'tunnel-progress'
const record = z.object({
  v: z.literal(1),
  url: z.string(),
  /** Id of the last event that was handled, and all before it. */
  position: z.string().nullable(),
  /** Messages that were read since the tunnel was opened. */
  read: z.int(),
  /** Those of them that are in the journal or were refused. */
  handled: z.int(),
  /** Whether the tunnel was closed, and all that was read had been handled. */
  closed: z.boolean(),
})

/** Milliseconds. A crash loses the count of what came after the last write. */
const INTERVAL_MS = 1000
/**
 * Ids of messages in a Redis stream, which a gosmee server can continue from. smee's ids count the messages of a connection
 * and lead nowhere.
 * @see https://redis.io/docs/latest/develop/data-types/streams/#entry-ids
 */
const STREAM_ID = /^\d{1,20}-\d{1,20}$/

/** How far the tunnel has read its channel. Stored once a second at most, so that the next start can continue, and say what is missing. */
export interface Progress extends AsyncDisposable {
  /** The id of the last event that was read; undefined if the server cannot continue from one. */
  readonly lastEventId: () => string | undefined
  /** Forgets the id, which the server does not accept. */
  readonly forgetId: () => void
  /** Counts a message as read, unless relay sent it to itself. */
  readonly read: (id: string | undefined, isOwn: boolean) => void
  /** Counts the message as handled once `done` resolves, which must not reject. To be called in the order of `read`. */
  readonly handle: (id: string | undefined, done: Promise<unknown>) => void
}

export interface ProgressOptions {
  readonly store: Store
  /** The channel. */
  readonly url: string
  readonly log: Log
  /** Once it aborts, the store belongs to another process. */
  readonly lost: AbortSignal | undefined
}

/** Loads the progress of the channel, and logs what an earlier process may have lost. @throws RelayError `storage` */
export async function openProgress({ store, url, log, lost }: ProgressOptions): Promise<Progress> {
  const saved = record.safeParse(await store.get(KEY)).data
  if (saved && !saved.closed && saved.read > 0) log.warn(unfinished(saved))
  let position = saved?.url === url ? saved.position : null
  let lastRead = position ?? undefined
  /** Of each message that is not handled yet, whether relay sent it to itself. */
  const own: boolean[] = []
  let read = 0
  let handled = 0
  let last: Promise<unknown> = Promise.resolve()
  const writes = createWrites(async (closed) => {
    // What cannot be stored is out of date by a second more.
    if (!lost?.aborted) await store.put(KEY, { v: 1, url, position, read, handled, closed }).catch(() => {})
  })
  const advance = async (
    id: string | undefined,
    isOwn: boolean,
    ...before: readonly Promise<unknown>[]
  ): Promise<void> => {
    await Promise.all(before)
    if (!isOwn) handled++
    if (id !== undefined && STREAM_ID.test(id)) position = id
    if (read > 0) writes.change()
  }
  return {
    lastEventId: () => lastRead,
    forgetId: () => void (lastRead = undefined),
    read(id, isOwn) {
      own.push(isOwn)
      if (id !== undefined && STREAM_ID.test(id)) lastRead = id
      if (isOwn) return
      read++
      writes.change()
    },
    handle(id, done) {
      const isOwn = own.shift() === true
      // In order: the position is that of a message before which none is missing.
      last = advance(id, isOwn, last, done)
    },
    async [Symbol.asyncDispose]() {
      await last
      await writes.end({ hasChanged: read > 0 || position !== (saved?.position ?? null) })
    },
  }
}

/** Writes of the progress, one after the other and one a second at most. */
interface Writes {
  /** Writes at once, or at the end of the second that the last write began. */
  change(): void
  /** Writes once more if anything has changed, as closed. Resolves when all is written. */
  end(state: { readonly hasChanged: boolean }): Promise<void>
}

/** `write` gets whether the tunnel is closed, and must not reject. */
function createWrites(write: (closed: boolean) => Promise<void>): Writes {
  let written = Promise.resolve()
  let timer: NodeJS.Timeout | undefined
  let isDue = false
  const enqueue = (closed: boolean): void => {
    isDue = false
    const before = written
    written = (async () => {
      await before
      await write(closed)
    })()
  }
  const start = (): void => {
    enqueue(false)
    timer = setTimeout(() => {
      timer = undefined
      if (isDue) start()
    }, INTERVAL_MS).unref()
  }
  return {
    change() {
      isDue = true
      if (!timer) start()
    },
    async end({ hasChanged }) {
      clearTimeout(timer)
      if (hasChanged) enqueue(true)
      await written
    },
  }
}

function unfinished({ url, read, handled }: z.infer<typeof record>): string {
  const [all, done] = [read, handled].map((count) => count.toLocaleString('en-US'))
  return `relay ended without closing its tunnel ${url}. It had read ${all} messages, and ${done} of them are in the journal or were refused. Messages of its last second may be missing: find them with the code host's list of deliveries, and redeliver them there`
}
