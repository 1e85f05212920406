import { computed, signal } from '@preact/signals'
import type { DeliveryLine, DeliveryPage } from '../api.js'
import { formatQuery } from './address.js'
import { getJson, onLive, RequestError } from './client.js'
import { EMPTY_LIST, type ListEvent, type Reading, reduce } from './list-state.js'
import { messageFrom } from './model.js'

// The list of deliveries: its state, and the reads and the timer that the state requires.

/** Size of the first page, as the shell preloads it, and of the following pages. */
const FIRST = 50
const PAGE = 200

/** Minimum time between two reads of the list while deliveries arrive. Milliseconds. */
const REFRESH_MS = 1000

export const list = signal(EMPTY_LIST)
export const lines = computed(() => list.value.lines)

let request = new AbortController()
let refresh: ReturnType<typeof setTimeout> | undefined

/** Changes the list by an event. */
export function dispatch(event: ListEvent): void {
  const { reading } = list.value
  list.value = reduce(list.value, event)
  const next = list.value
  if (next.reading && next.reading !== reading) {
    request.abort()
    request = new AbortController()
    void read(next.reading, request.signal)
  }
  if (next.isStale)
    refresh ??= setTimeout(() => {
      refresh = undefined
      dispatch({ type: 'due' })
    }, REFRESH_MS)
}

async function read({ id, kind, query }: Reading, signal: AbortSignal): Promise<void> {
  const search = formatQuery(query)
  const limit = `${search === '' ? '?' : '&'}limit=${kind === 'more' ? PAGE : FIRST}`
  try {
    const page = await getJson<DeliveryPage>(`deliveries${search}${limit}`, signal)
    dispatch({ type: 'read', id, page })
  } catch (error) {
    if (signal.aborted) return
    const isRefused = error instanceof RequestError && error.status === 400
    dispatch({ type: 'failed', id, problem: messageFrom(error), isRefused })
  }
}

onLive((event) => {
  if (event.type === 'lines' || event.type === 'removed' || event.type === 'stale') dispatch(event)
})

/** Returns the line at a distance from another. Undefined if that one is not in the list. */
export function lineNear(n: number | undefined, steps: number): DeliveryLine | undefined {
  const index = lines.value.findIndex((line) => line.n === n)
  if (index === -1) return undefined
  return lines.value[Math.min(Math.max(index + steps, 0), lines.value.length - 1)]
}
