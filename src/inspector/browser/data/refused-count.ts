import type { RefusedPage } from '../../api.js'
import { createStore } from '../model/store.js'
import { onLive } from './live.js'

/** How many requests were refused, by kind. */
export const refusedStore = createStore<RefusedPage['counts']>({})

/** Follows the counts, with which the stream of events begins. */
export function followRefused(): void {
  onLive((event) => {
    if (event.type === 'refused') refusedStore.set(event.counts)
  })
}

export function totalOf(counts: RefusedPage['counts']): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0)
}
