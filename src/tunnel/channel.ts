import { z } from 'zod'
import { type Cancellable, deadline } from '../base/abort.js'
import { RelayError } from '../base/errors.js'
import { describeConnectionError } from '../net/connection-error.js'
import type { SendOnce } from '../net/send-once.js'
import type { Store } from '../store/contract.js'

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
 * and saves it for the profile, so that the code host's webhook settings stay valid.
 * @throws RelayError `provider_failed` if the server does not create a channel; `storage`.
 */
export async function openChannel(
  address: string,
  { store, sendOnce, signal }: ChannelOptions,
): Promise<string> {
  if (new URL(address).pathname !== '/') return address
  const server = new URL(address).origin
  const saved = record.safeParse(await store.get(KEY)).data
  if (saved?.server === server) return saved.url
  const url = await createChannel(server, sendOnce, deadline(TIMEOUT_MS, signal))
  await store.put(KEY, { v: 1, server, url })
  return url
}

async function createChannel(server: string, sendOnce: SendOnce, signal: AbortSignal): Promise<string> {
  const { SmeeClient } = await import('smee-client')
  let status: number | undefined
  /** Uses only the address from the client's call: the client would choose another proxy than relay. */
  const request = async (url: string, method: 'HEAD' | 'GET' = 'HEAD'): Promise<object> => {
    const { header, discard, ...response } = await sendOnce(url, { method, headers: {}, signal })
    discard()
    status = response.status
    // gosmee's server creates channels only for GET.
    if (status === 405 && method === 'HEAD') return request(url, 'GET')
    return { headers: { get: header } }
  }
  const options: object = { newChannelUrl: `${server}/new`, fetch: (url: string) => request(url) }
  const location = await SmeeClient.createChannel(options).catch((cause: unknown) => {
    const reason = status === undefined ? describeConnectionError(cause) : `it answers ${status}`
    throw new RelayError('provider_failed', `${server} did not create a channel: ${reason}`, { cause })
  })
  return atServer(location, server)
}

/** The channel's path on this server. A server behind a proxy may not know its own scheme; another host is an error. */
function atServer(location: string, server: string): string {
  const url = URL.canParse(location, server) ? new URL(location, server) : undefined
  if (!url || url.host !== new URL(server).host || url.pathname === '/')
    throw new RelayError('provider_failed', `${server} did not create a channel: it is not a smee server`)
  return `${server}${url.pathname}`
}
