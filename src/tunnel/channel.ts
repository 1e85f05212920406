import { z } from 'zod/mini'
import { deadline } from '../base/wait.js'
import { RelayError } from '../base/errors.js'
import { parseUrl } from '../base/address.js'
import { DEFAULT_TUNNEL, isChannel, NEW_TUNNEL } from '../base/settings.js'
import { shownSource } from '../base/source-names.js'
import { describeConnectionError, parseRetryAfter } from '../net/errors.js'
import { redirectTarget } from '../net/redirect.js'
import { type OutboundResponse, readResponseText, type ResponseHead, type SendOnce } from '../net/client.js'
import type { Store, StoreReader } from '../store/kv.js'
import { TunnelRefusal } from './reconnect.js'

const CHANNEL = 'tunnel-channel'
const record = z.object({ v: z.literal(1), server: z.string(), url: z.string() })
/** Time limit for creating a channel, in milliseconds. */
const TIMEOUT_MS = 15_000

/** Key of a record about a source's channel. For the code host, it is the plain name. */
export function recordOf(name: string, source: string): string {
  return shownSource(source) === undefined ? name : `${name}/${source}`
}

/**
 * Returns the URL of a source's channel. An `address` with a path is the channel itself. For a server's address, a
 * channel is created once and saved for the profile, so that the sender's webhook settings stay valid. For `new`,
 * another one replaces it on the same server.
 * @throws RelayError `provider_failed` if the server does not create a channel; `storage`
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
  // A source without a channel gets one on the server of the code host's channel.
  const known = saved ?? (isNew ? await read(CHANNEL) : undefined)
  const server = isNew ? (known?.server ?? DEFAULT_TUNNEL) : new URL(address).origin
  if (!isNew && saved?.server === server) return saved.url
  const url = await createChannel(server, sendOnce, deadline(TIMEOUT_MS, signal)).catch((cause: unknown) => {
    const { message, retryAfter } = tunnelFailure(cause)
    const reason = `${server} did not create a channel: ${message}`
    throw new RelayError('provider_failed', reason, { cause, retryAfter })
  })
  await store.put(key, { v: 1, server, url })
  return url
}

/** Server of the code host's saved channel. Undefined without one. */
export async function savedServer(store: StoreReader | undefined): Promise<string | undefined> {
  return record.safeParse(await store?.get(CHANNEL)).data?.server
}

/**
 * Asks a server for a new channel. smee's server redirects to it, also for HEAD. gosmee's creates channels only for
 * GET.
 */
async function createChannel(server: string, sendOnce: SendOnce, signal: AbortSignal): Promise<string> {
  const request = { headers: {}, signal }
  let response = await sendOnce(`${server}/new`, { method: 'HEAD', ...request })
  if (response.status === 405) response = await sendOnce(`${server}/new`, { method: 'GET', ...request })
  const location = response.header('location') ?? (await addressIn(response))
  response.discard()
  if (location === undefined)
    throw tunnelRefusal(`it answers ${response.status}${hubNote(response)}`, response)
  const url = parseUrl(location, server)
  // A server behind a proxy may not know its own scheme. Another host is an error.
  if (!url || url.host !== new URL(server).host || url.pathname === '/')
    throw tunnelRefusal(`it is not a smee server${redirectNote(response, `${server}/new`)}`, response)
  return `${server}${url.pathname}`
}

/**
 * Reads the channel's address from the text of a 200 response, as gosmee sends since version 0.25. Earlier versions
 * redirect.
 */
async function addressIn(response: OutboundResponse): Promise<string | undefined> {
  const isText = /^text\/plain\b/.test(response.header('content-type') ?? '')
  if (response.status !== 200 || !isText) return undefined
  const path = parseUrl((await readResponseText(response)).trim())?.pathname
  // The address that a server gives itself may be wrong from outside, such as http://localhost:3333.
  return path !== undefined && /^(?:\/[\w-]+)+$/.test(path) ? path : undefined
}

/** Describes the target of a server's redirect, as the end of a sentence. */
export function redirectNote(response: OutboundResponse, from: string): string {
  const elsewhere = redirectTarget(response, from)
  return elsewhere === undefined
    ? ''
    : `: it redirects to ${elsewhere}, which is not followed. If it has moved there, set --tunnel to that`
}

/** Path of a payload URL at a hub. */
const HUB_PAYLOAD = /^\/[\w-]{32}\/[a-z][\w-]*$/i

/** Says how a hub is used, at the end of a sentence, if the server or the address may be one. Empty for any other. */
export function hubNote({ status, header }: ResponseHead, url?: string): string {
  const { origin, pathname = '' } = (url !== undefined && parseUrl(url)) || {}
  if (HUB_PAYLOAD.test(pathname))
    return `. If that is a payload URL of a hub, name the hub alone, --tunnel ${origin}, with RELAY_HUB_TOKEN at the first start`
  // A smee server answers its own 404 with a page.
  const isJson = /^application\/json\b/.test(header('content-type') ?? '')
  return status === 404 && isJson
    ? '. If it is a hub, set RELAY_HUB_TOKEN to an invitation, which its operator makes with relay hub invite'
    : ''
}

/** Error for a refusal of the tunnel's server, with the delay that it asks for. */
export function tunnelRefusal(reason: string, { status, header }: ResponseHead): TunnelRefusal {
  const wait = parseRetryAfter(header, Date.now())
  const retryAfter = wait === undefined ? undefined : Math.ceil(wait / 1000)
  return new TunnelRefusal(reason, status, { retryAfter })
}

/** Error for a failed call to the tunnel's server. */
export function tunnelFailure(error: unknown): RelayError {
  if (error instanceof RelayError) return error
  return new RelayError('provider_failed', describeConnectionError(error), { cause: error })
}
