import type { Timeline } from '../../api.js'
import { createStore } from '../model/store.js'
import { onLive } from './live.js'
import { getJson } from './request.js'

/** How often the strip is read again while something arrives; it is drawn by the minute. */
const REFRESH_MS = 1000

/** And while nothing does, so that it moves on. */
const IDLE_MS = 30_000

export const timelineStore = createStore<Timeline | null>(null)

let timer: ReturnType<typeof setTimeout> | undefined
let isSoon = false

/** Reads the last hour, and from now on again whenever something arrives. */
export function followTimeline(): void {
  onLive((event) => {
    if (event.type === 'deliveries' || event.type === 'refused') schedule(true)
  })
  void read()
}

function schedule(soon: boolean): void {
  if (timer !== undefined && (isSoon || !soon)) return
  clearTimeout(timer)
  isSoon = soon
  timer = setTimeout(() => void read(), soon ? REFRESH_MS : IDLE_MS)
}

async function read(): Promise<void> {
  timer = undefined
  // Without an answer the strip stays as it was; the banner says that relay is away.
  const timeline = await getJson<Timeline>('timeline').catch(() => undefined)
  if (timeline) timelineStore.set(timeline)
  schedule(false)
}
