import { Disposal } from '../base/disposal.js'
import { createLogThrottle } from '../base/log-throttle.js'
import type { Clock } from '../base/time.js'
import type { SendOnce } from '../net/send-once.js'
import { type Connection, openConnection } from './connection.js'
import { createHandover } from './handover.js'
import { createIngress, type Links, type Received } from './ingress.js'
import { createLargeMessages } from './large.js'
import type { TunnelLimits, TunnelOptions } from './options.js'
import { openProgress } from './progress.js'
import { createQueue } from './queue.js'
import { createReceiver } from './receive.js'
import type { ConnectionEnd } from './reconnect.js'
import { createRoundTrip, repeatRoundTrip } from './round-trip.js'
import type { Status } from './state.js'
import { pause } from './watchdog.js'

/** Listens on one channel, over one connection after the other. */
export interface Listener extends AsyncDisposable {
  /**
   * Opens a connection. Resolves once another one is needed. Meanwhile, this one is read on: it is closed only when it has
   * delivered all that the next one does not.
   */
  connect(): Promise<ConnectionEnd>
}

export interface ListenerParts {
  /** The channel's address. */
  readonly url: string
  readonly options: TunnelOptions
  readonly limits: TunnelLimits
  readonly status: Status
  readonly sendOnce: SendOnce
  readonly clock: Clock
  readonly delay: (failures: number) => number
  readonly signal: AbortSignal
}

/** Loads the progress of the channel. @throws RelayError `storage` */
export async function openListener(parts: ListenerParts): Promise<Listener> {
  const { url, limits, status, clock, sendOnce, signal } = parts
  const { close, onEvent, onTooLarge, progress, roundTrip } = await openPipeline(parts)
  const connections = new Set<Connection>()
  let current: { readonly connection: Connection; readonly links: Links } | undefined
  const open = (links: Links): Connection => {
    const connection = openConnection({
      url,
      lastEventId: progress.lastEventId(),
      sendOnce,
      clock,
      limits,
      onEvent: (event, { close }) => onEvent(event, links, close),
      onTooLarge,
      signal,
    })
    connections.add(connection)
    void forgetWhenClosed(connection)
    return connection
  }
  const forgetWhenClosed = async (connection: Connection): Promise<void> => {
    await connection.closed
    connections.delete(connection)
    if (current?.connection === connection) current = undefined
  }
  const connect = async (): Promise<ConnectionEnd> => {
    const old = current
    const handover = old && createHandover(old.connection)
    if (old) old.links.newer = handover
    const links: Links = { older: handover, newer: undefined }
    const connection = open(links)
    const rejection = await connection.opened
    if (rejection) {
      if (old) old.links.newer = undefined
      if (!rejection.refusesId) return { ...rejection, opened: false, steady: false }
      progress.forgetId()
      return connect()
    }
    current = { connection, links }
    old?.connection.drain()
    const opened = clock()
    status.change({ state: 'connected', url, why: null, attempt: 0, retryAt: null, roundTrip: null })
    await using _check = startCheck(parts, roundTrip)
    const reason = await connection.lost
    return { reason, opened: true, steady: clock() - opened >= limits.steady }
  }
  return {
    connect,
    async [Symbol.asyncDispose]() {
      await Promise.all([...connections].map(({ closed }) => closed))
      await close()
    },
  }
}

type Pipeline = Awaited<ReturnType<typeof openPipeline>>

/** The way of a message from a connection to the intake. */
async function openPipeline({ url, options, limits, signal }: ListenerParts) {
  const { intake, refusals, provider, secrets, store, lost, maxBody, log } = options
  await using closing = new Disposal()
  const roundTrip = createRoundTrip(provider.webhook)
  const unpackParts = { secrets, scheme: provider.webhook, maxBody }
  const large = closing.use(createLargeMessages(unpackParts, signal, limits.large))
  const progress = closing.use(await openProgress({ store, url, log, lost }))
  const { receive, refuseUnsigned } = createReceiver({
    ...unpackParts,
    source: provider.name,
    intake,
    refusals,
    log,
    large,
    isOwn: roundTrip.isOwn,
  })
  const queue = closing.use(
    createQueue(async ({ event, id }: Received) => {
      const handling = await receive(event)
      progress.handle(id, handling.accepted)
      return handling
    }, limits.queue),
  )
  const throttle = createLogThrottle(log)
  const onEvent = createIngress({
    queue,
    progress,
    refuseUnsigned,
    isRoundTrip: roundTrip.isInFlight,
    onGap: () => log.warn(GAP),
  })
  const opened = closing.move()
  return {
    roundTrip,
    progress,
    onEvent,
    onTooLarge: () => throttle(TOO_LARGE, () => log.warn(TOO_LARGE)),
    close: () => opened[Symbol.asyncDispose](),
  }
}

const TOO_LARGE = 'the tunnel dropped a message: it is larger than --max-body allows'
const GAP =
  "the tunnel's server did not store all messages that it received while relay was away: redeliver the missing ones at the code host"

/** Sends messages to itself until one comes back. Ends with the connection. */
function startCheck(
  { url, limits, status, sendOnce, clock, delay, signal }: ListenerParts,
  roundTrip: Pipeline['roundTrip'],
): AsyncDisposable {
  const ended = new AbortController()
  const until = AbortSignal.any([signal, ended.signal])
  const checking = repeatRoundTrip({
    run: () => roundTrip.run(url, { sendOnce, limit: limits.roundTrip, signal: until }),
    wait: (failures, retryAfter = 0) =>
      pause(Math.max(delay(failures), retryAfter), { clock, tick: limits.tick, signal: until }),
    onChange: (outcome) => status.change({ roundTrip: outcome }),
    signal: until,
  })
  return {
    async [Symbol.asyncDispose]() {
      ended.abort()
      await checking
    },
  }
}
