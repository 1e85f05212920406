import { z } from 'zod'
import { type Cancellable, deadline } from '../base/abort.js'
import { describeConnectionError } from '../base/connection-error.js'
import { RelayError } from '../base/errors.js'
import type { Store } from '../store/contract.js'

const KEY = 'tunnel-channel'
const row = z.object({ v: z.literal(1), server: z.string(), url: z.string() })
/** Milliseconds the server has to make a channel. */
const LIMIT = 15_000

export interface ChannelOptions extends Cancellable {
  readonly store: Store
  readonly fetch: typeof fetch
}

/**
 * The channel that `address` means: itself where it has a path; where it names a server, one made there, once for the
 * profile, so that the code host's webhook settings stay right.
 * @throws RelayError `provider_failed` when the server makes none; `storage`.
 */
export async function openChannel(
  address: string,
  { store, fetch, signal }: ChannelOptions,
): Promise<string> {
  if (new URL(address).pathname !== '/') return address
  const server = new URL(address).origin
  const kept = row.safeParse(await store.get(KEY)).data
  if (kept?.server === server) return kept.url
  const url = await createChannel(server, fetch, deadline(LIMIT, signal))
  await store.put(KEY, { v: 1, server, url })
  return url
}

async function createChannel(
  server: string,
  fetch: typeof globalThis.fetch,
  signal: AbortSignal,
): Promise<string> {
  const { SmeeClient } = await import('smee-client')
  let answer: Response | undefined
  /** Takes nothing of what the client wants but the address: the proxy it chooses is not ours. */
  const ask = async (url: string | URL | Request): Promise<Response> => {
    answer = await fetch(url, { method: 'HEAD', redirect: 'manual', signal })
    // gosmee's server makes one for nothing but GET.
    if (answer.status === 405) answer = await fetch(url, { redirect: 'manual', signal })
    await answer.body?.cancel()
    return answer
  }
  const options = { newChannelUrl: `${server}/new`, fetch: ask }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- its type is undici's, ours the runtime's
  const location = await SmeeClient.createChannel(options as object).catch((cause: unknown) => {
    const why = answer ? `it answers ${answer.status}` : describeConnectionError(cause)
    throw new RelayError('provider_failed', `${server} makes no channel: ${why}`, { cause })
  })
  return atServer(location, server)
}

/** Behind a proxy a server may not know how it is reached; that it does not send us elsewhere is ours to see to. */
function atServer(location: string, server: string): string {
  const url = URL.canParse(location, server) ? new URL(location, server) : undefined
  if (!url || url.host !== new URL(server).host || url.pathname === '/')
    throw new RelayError('provider_failed', `${server} makes no channel: it is no smee server`)
  return `${server}${url.pathname}`
}
