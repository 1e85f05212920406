import type {
  DeliveryDetail,
  DeliveryPage,
  InstanceState,
  ListQuery,
  RefusedDetail,
  RefusedPage,
  Timeline,
} from './api.js'
import { describeDelivery } from './detail.js'
import { listDeliveries } from './list.js'
import type { InspectorParts } from './parts.js'
import { describeRefused, listRefused } from './refused.js'
import { createStateReader } from './state.js'
import { createTimeline } from './timeline.js'

/** What the inspector shows, for its API and its pages. Methods reject with the RelayErrors that the API answers. */
export interface InspectorData {
  list(query: ListQuery): Promise<DeliveryPage>
  delivery(n: number): Promise<DeliveryDetail>
  refused(): Promise<RefusedPage>
  refusedEntry(id: number): Promise<RefusedDetail>
  state(): Promise<InstanceState>
  timeline(): Promise<Timeline>
}

export function createData(parts: InspectorParts): InspectorData {
  const state = createStateReader(parts)
  const timeline = createTimeline(parts)
  return {
    list: (query) => listDeliveries(parts, query),
    delivery: (n) => describeDelivery(parts, n),
    refused: () => listRefused(parts),
    refusedEntry: (id) => describeRefused(parts, id),
    state: () => state.read(),
    timeline,
  }
}
