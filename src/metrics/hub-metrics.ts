import type { Clock } from '../base/time.js'
import type { FetchHandler } from '../http/listen.js'
import { type Hub, TAKE_RESULTS, type TakeResult } from '../hub/hub.js'
import type { Channel } from '../hub/records.js'
import type { JournalObserver } from '../journal/journal.js'
import { createLabels, createMetricsReader, MetricRegistry, type MetricsService } from './registry.js'

/** Sources of a hub's metrics, read at each request. */
export interface HubMetricsParts extends MetricsService {
  readonly hub: Pick<Hub, 'journal' | 'records'>
  readonly clock: Clock
}

/** Metrics of a running hub, for Prometheus: none has an address, a header or a body. */
export interface HubMetrics {
  readonly observer: JournalObserver
  /** Counts a request of a sender. */
  readonly onTaken: (result: TakeResult) => void
  /** Makes what answers GET /metrics. */
  serve(parts: HubMetricsParts): { readonly fetch: FetchHandler }
}

/** Characters of a channel's address that its label has, as in the log: too few to send to it. */
const SHOWN = 4
const STATES = ['connected', 'not_connected', 'withdrawn'] as const

/** Creates the metrics. Loads prom-client. */
export function createHubMetrics(): HubMetrics {
  const register = new MetricRegistry()
  const { requests, fetched, storage, ...gauges } = createAll(register)
  for (const result of TAKE_RESULTS) requests.inc({ result }, 0)
  return {
    observer: {
      stored: (_, __, seconds) => storage.observe({ operation: 'store' }, seconds),
      recorded: () => {},
      ended: () => fetched.inc(),
    },
    onTaken: (result) => requests.inc({ result }),
    serve: (parts) => register.serve(parts, createChannelReader(parts, gauges)),
  }
}

/** Returns a function that updates the metrics of the channels. It does not reject. */
function createChannelReader(
  { hub, clock, log }: HubMetricsParts,
  { channels, waiting, oldest }: Pick<ReturnType<typeof createAll>, 'channels' | 'waiting' | 'oldest'>,
): () => Promise<void> {
  const names = new Map<string, string>()
  const labelOf = createLabels((id) => names.get(id) ?? `${id.slice(0, SHOWN)}…`)
  const read = createMetricsReader('channels', log, async () => {
    const all = await hub.records.channels()
    const states = await Promise.all(all.map((channel) => stateOf(hub, channel)))
    return { all, states, counts: await hub.journal.counts() }
  })
  return async () => {
    const found = await read()
    for (const gauge of [channels, waiting, oldest]) gauge.reset()
    if (!found) return
    const { all, states, counts } = found
    for (const state of STATES) channels.set({ state }, states.filter((each) => each === state).length)
    const now = clock()
    for (const { id, name } of all) {
      if (name !== '') names.set(id, name)
      const [channel, queue] = [labelOf(id), counts.get(id)]
      waiting.inc({ channel }, queue?.waiting ?? 0)
      oldest.set({ channel }, (now - (queue?.oldest ?? now)) / 1000)
    }
  }
}

/** Creates all metrics except Node's own. */
function createAll(register: MetricRegistry) {
  return {
    requests: register.counter(
      'relay_hub_requests_total',
      'Requests of senders. stored: answered after they were on disk. unknown: to no channel. unavailable: answered 503, since storage failed.',
      'result',
    ),
    fetched: register.counter(
      'relay_hub_fetched_total',
      'Requests that workstations have acknowledged: they are in the journals there.',
    ),
    storage: register.storage('How long storing a request took until it was on disk, or failed.'),
    channels: register.gauge(
      'relay_hub_channels',
      'Channels, by whether their workstation is connected.',
      'state',
    ),
    waiting: register.gauge(
      'relay_hub_waiting_requests',
      'Requests that wait for the workstation.',
      'channel',
    ),
    oldest: register.gauge(
      'relay_hub_oldest_seconds',
      'How long the oldest of them has waited; 0 if none waits.',
      'channel',
    ),
  }
}

async function stateOf(
  { records }: Pick<Hub, 'records'>,
  { id, isWithdrawn }: Channel,
): Promise<(typeof STATES)[number]> {
  if (isWithdrawn) return 'withdrawn'
  return (await records.session(id)) ? 'connected' : 'not_connected'
}
