import type { Dispatcher } from 'undici'
import { StartOf } from '../base/start-of.js'
import { type AgentResponse, type HeaderReader, sendThrough } from './agent.js'

/** 256 KiB: a body up to this length is read completely, so that its connection can be reused; a longer one is cut off. */
const MAX_READ = 262_144

/** A target's response to a delivery. */
export interface DeliveryResponse {
  readonly status: number
  readonly header: HeaderReader
  /** Every header line; names in lower case. */
  readonly lines: AgentResponse['lines']
  /** The start of the body. */
  readonly start: Uint8Array
}

/** The response is not HTTP/1.1: probably another kind of server listens there. */
export class NotHttpError extends Error {
  override readonly name = 'NotHttpError'
  /** Its first bytes, if undici reports them. */
  readonly start: Uint8Array

  constructor(start: Uint8Array) {
    super('its answer is not HTTP/1.1: check the address and the port')
    this.start = start
  }
}

/**
 * Sends a delivery and reads the response. The status decides: a body that is interrupted, also by the signal, is no failure.
 * @throws NotHttpError; otherwise as {@link sendThrough}.
 */
export async function exchange(
  agent: Dispatcher,
  url: URL,
  request: Pick<Dispatcher.RequestOptions, 'headers' | 'body'>,
  signal: AbortSignal,
): Promise<DeliveryResponse> {
  try {
    const { body, ...head } = await sendThrough(agent, url, { ...request, method: 'POST' }, { signal })
    return { ...head, start: await readStart(body) }
  } catch (error) {
    throw toNotHttp(error) ?? error
  }
}

async function readStart(body: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const start = new StartOf()
  let read = 0
  try {
    for await (const chunk of body) {
      start.add(chunk)
      read += chunk.byteLength
      if (read > MAX_READ) break
    }
  } catch {
    // The part that arrived is enough.
  }
  return start.bytes
}

/** undici's names for responses that its parser refuses. They have no code (undici 7.30), although one is intended. */
const UNREADABLE = new Set(['HTTPParserError', 'HeadersOverflowError', 'ResponseContentLengthMismatchError'])

function toNotHttp(error: unknown): NotHttpError | undefined {
  const { name, message, data }: Partial<Record<'name' | 'message' | 'data', unknown>> = Object(error)
  // To undici, an unexpected 100 or 101 is a socket error.
  const isRefused = name === 'SocketError' && /^bad (?:response|upgrade)$/.test(String(message))
  if (!isRefused && !UNREADABLE.has(String(name))) return undefined
  const start = new StartOf()
  if (typeof data === 'string') start.add(Buffer.from(data))
  return new NotHttpError(start.bytes)
}
