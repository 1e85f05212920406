import { z } from 'zod'
import { parseUrl } from '../base/parse-url.js'
import { type Cancellable, deadline } from '../base/abort.js'
import { RelayError } from '../base/errors.js'
import { DEFAULT_TUNNEL, NEW_TUNNEL } from '../base/settings.js'
import { describeConnectionError } from '../net/connection-error.js'
import { parseRetryAfter } from '../net/retry-after.js'
import { readText, type OutboundResponse, type SendOnce } from '../net/send-once.js'
import type { Store } from '../store/kv.js'

const KEY = 'tunnel-channel'
const record = z.object({ v: z.literal(1), server: z.string(), url: z.string() })
/** Milliseconds the server has to create a channel. */
const TIMEOUT_MS = 15_000

export interface ChannelOptions extends Cancellable {
  readonly store: Store
  readonly sendOnce: SendOnce
}

/**
 * The URL of the channel. An `address` with a path is the channel itself. For a server's address, creates a channel once
 * and saves it for the profile, so that the code host's webhook settings stay valid. For `new`, creates another one in its
 * place on the same server.
 * @throws RelayError `provider_failed` if the server does not create a channel; `storage`.
 */
export async function openChannel(
  address: string,
  { store, sendOnce, signal }: ChannelOptions,
): Promise<string> {
  const isNew = address === NEW_TUNNEL
  if (!isNew && new URL(address).pathname !== '/') return address
  const saved = record.safeParse(await store.get(KEY)).data
  const server = isNew ? (saved?.server ?? DEFAULT_TUNNEL) : new URL(address).origin
  if (!isNew && saved?.server === server) return saved.url
  const url = await createChannel(server, sendOnce, deadline(TIMEOUT_MS, signal))
  await store.put(KEY, { v: 1, server, url })
  return url
}

/** What the server answered to the request for a channel. */
interface Answer {
  readonly status: number
  /** The channel's address. */
  readonly address: string | undefined
  /** Seconds. */
  readonly retryAfter: number | undefined
}

async function createChannel(server: string, sendOnce: SendOnce, signal: AbortSignal): Promise<string> {
  const { SmeeClient } = await import('smee-client')
  let answer: Answer | undefined
  /** Uses only the address from the client's call: the client would choose another proxy than relay. */
  const request = async (url: string): Promise<object> => {
    answer = await ask(url, 'HEAD', sendOnce, signal)
    // gosmee's server creates channels only for GET.
    if (answer.status === 405) answer = await ask(url, 'GET', sendOnce, signal)
    const { address } = answer
    return { headers: { get: () => address } }
  }
  const options: object = { newChannelUrl: `${server}/new`, fetch: request }
  const address = await SmeeClient.createChannel(options).catch((cause: unknown) => {
    const reason = answer === undefined ? describeConnectionError(cause) : `it answers ${answer.status}`
    throw notCreated(server, reason, { cause, retryAfter: answer?.retryAfter })
  })
  return atServer(address, server)
}

async function ask(
  url: string,
  method: 'HEAD' | 'GET',
  sendOnce: SendOnce,
  signal: AbortSignal,
): Promise<Answer> {
  const response = await sendOnce(url, { method, headers: {}, signal })
  const { status, header } = response
  const address = header('location') ?? (method === 'GET' ? await addressInText(response) : undefined)
  response.discard()
  const wait = parseRetryAfter(header, Date.now())
  return { status, address, retryAfter: wait === undefined ? undefined : Math.ceil(wait / 1000) }
}

/** gosmee's server answers 200 with the channel's address as text, since version 0.25. Earlier ones redirect. */
async function addressInText(response: OutboundResponse): Promise<string | undefined> {
  if (response.status !== 200 || !/^text\/plain\b/.test(response.header('content-type') ?? ''))
    return undefined
  const path = parseUrl((await readText(response)).trim())?.pathname
  // The address that a server gives itself may be wrong from outside, such as http://localhost:3333.
  return path !== undefined && /^(?:\/[\w-]+)+$/.test(path) ? path : undefined
}

/** The channel's path on this server. A server behind a proxy may not know its own scheme; another host is an error. */
function atServer(location: string, server: string): string {
  const url = parseUrl(location, server)
  if (!url || url.host !== new URL(server).host || url.pathname === '/')
    throw notCreated(server, 'it is not a smee server')
  return `${server}${url.pathname}`
}

function notCreated(server: string, reason: string, options = {}): RelayError {
  return new RelayError('provider_failed', `${server} did not create a channel: ${reason}`, options)
}
