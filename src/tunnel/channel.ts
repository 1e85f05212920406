import { z } from 'zod'
import { deadline } from '../base/wait.js'
import { RelayError } from '../base/errors.js'
import { parseUrl } from '../base/address.js'
import { DEFAULT_TUNNEL, isChannel, isCodeHost, NEW_TUNNEL } from '../base/settings.js'
import { describeConnectionError, parseRetryAfter } from '../net/errors.js'
import { redirectTarget } from '../net/redirect.js'
import { type OutboundResponse, readText, type SendOnce } from '../net/client.js'
import type { Store } from '../store/kv.js'

const CHANNEL = 'tunnel-channel'
const record = z.object({ v: z.literal(1), server: z.string(), url: z.string() })
/** Milliseconds that the server has to create a channel. */
const TIMEOUT_MS = 15_000

/** The key of a record about a source's channel; of the code host's, the name itself. */
export function recordOf(name: string, source: string): string {
  return isCodeHost(source) ? name : `${name}/${source}`
}

/**
 * The URL of a source's channel. An `address` with a path is the channel itself. For a server's address, creates a channel once
 * and saves it for the profile, so that the sender's webhook settings stay valid. For `new`, creates another one in its
 * place on the same server.
 * @throws RelayError `provider_failed` if the server does not create a channel; `storage`.
 */
export async function findChannel(
  address: string,
  {
    source,
    store,
    sendOnce,
    signal,
  }: { source: string; store: Store; sendOnce: SendOnce; signal: AbortSignal },
): Promise<string> {
  if (isChannel(address)) return address
  const read = async (key: string) => record.safeParse(await store.get(key)).data
  const isNew = address === NEW_TUNNEL
  const key = recordOf(CHANNEL, source)
  const saved = await read(key)
  // A source that has no channel yet gets one where the code host has its own.
  const known = saved ?? (isNew ? await read(CHANNEL) : undefined)
  const server = isNew ? (known?.server ?? DEFAULT_TUNNEL) : new URL(address).origin
  if (!isNew && saved?.server === server) return saved.url
  const url = await createChannel(server, sendOnce, deadline(TIMEOUT_MS, signal)).catch((cause: unknown) => {
    const { message, retryAfter } = failureOf(cause)
    const reason = `${server} did not create a channel: ${message}`
    throw new RelayError('provider_failed', reason, { cause, retryAfter })
  })
  await store.put(key, { v: 1, server, url })
  return url
}

/** smee's server redirects to the new channel, also for HEAD. gosmee's creates channels only for GET. */
async function createChannel(server: string, sendOnce: SendOnce, signal: AbortSignal): Promise<string> {
  const request = { headers: {}, signal }
  let response = await sendOnce(`${server}/new`, { method: 'HEAD', ...request })
  if (response.status === 405) response = await sendOnce(`${server}/new`, { method: 'GET', ...request })
  const location = response.header('location') ?? (await addressIn(response))
  response.discard()
  if (location === undefined) throw refusal(`it answers ${response.status}`, response)
  const url = parseUrl(location, server)
  // A server behind a proxy may not know its own scheme. Another host is an error.
  if (!url || url.host !== new URL(server).host || url.pathname === '/')
    throw refusal(`it is not a smee server${redirect(response, `${server}/new`)}`, response)
  return `${server}${url.pathname}`
}

/** gosmee's server answers 200 with the channel's address as text, since version 0.25. Earlier ones redirect. */
async function addressIn(response: OutboundResponse): Promise<string | undefined> {
  const isText = /^text\/plain\b/.test(response.header('content-type') ?? '')
  if (response.status !== 200 || !isText) return undefined
  const path = parseUrl((await readText(response)).trim())?.pathname
  // The address that a server gives itself may be wrong from outside, such as http://localhost:3333.
  return path !== undefined && /^(?:\/[\w-]+)+$/.test(path) ? path : undefined
}

/** Where a server redirects, as the end of a sentence. */
export function redirect(response: OutboundResponse, from: string): string {
  const elsewhere = redirectTarget(response, from)
  return elsewhere === undefined
    ? ''
    : `: it redirects to ${elsewhere}, which is not followed. If it has moved there, set --tunnel to that`
}

/** What the tunnel's server refuses, and how long it asks to wait. */
export function refusal(reason: string, { header }: Pick<OutboundResponse, 'header'>): RelayError {
  const wait = parseRetryAfter(header, Date.now())
  const retryAfter = wait === undefined ? undefined : Math.ceil(wait / 1000)
  return new RelayError('provider_failed', reason, { retryAfter })
}

/** The failure of a call to the tunnel's server. */
export function failureOf(error: unknown): RelayError {
  if (error instanceof RelayError) return error
  return new RelayError('provider_failed', describeConnectionError(error), { cause: error })
}
