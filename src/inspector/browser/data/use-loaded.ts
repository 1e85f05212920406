import { useEffect, useState } from 'hono/jsx/dom'
import { getJson, messageFrom, RequestError } from './request.js'
import { connectionStore, onLive } from './live.js'
import type { LiveEvent } from '../../api.js'

/** Something that is read from the instance. */
export interface Loaded<T> {
  readonly value: T | null
  /** Why it could not be read; `value` is then what was read before, if anything. */
  readonly problem: { readonly isMissing: boolean; readonly message: string } | null
}

/** What is shown may change several times a second; it is read again at most this often. */
const REFRESH_MS = 400

/**
 * Reads `api/{path}`, and again when an event says that it has changed or the stream of events begins. The value of another path is
 * never shown.
 */
export function useLoaded<T>(path: string, isAffected: (event: LiveEvent) => boolean): Loaded<T> {
  const [loaded, setLoaded] = useState<Loaded<T> & { readonly path: string }>({
    path,
    value: null,
    problem: null,
  })
  useEffect(() => {
    const ended = new AbortController()
    let timer: ReturnType<typeof setTimeout> | undefined
    const read = async (): Promise<void> => {
      timer = undefined
      try {
        const value = await getJson<T>(path, ended.signal)
        if (!ended.signal.aborted) setLoaded({ path, value, problem: null })
      } catch (error) {
        if (ended.signal.aborted) return
        const isMissing = error instanceof RequestError && error.status === 404
        const problem = { isMissing, message: messageFrom(error) }
        setLoaded((before) => ({ path, value: before.path === path ? before.value : null, problem }))
      }
    }
    const readSoon = (): void => {
      timer ??= setTimeout(() => void read(), REFRESH_MS)
    }
    const stop = onLive((event) => {
      if (isAffected(event)) readSoon()
    })
    // What happened before the stream began, or while it was away, may not have been reported.
    const leave = connectionStore.subscribe(() => {
      if (connectionStore.get() === 'live') readSoon()
    })
    void read()
    return () => {
      stop()
      leave()
      clearTimeout(timer)
      ended.abort()
    }
  }, [path])
  return loaded.path === path ? loaded : { value: null, problem: null }
}
