import type { Readable } from 'node:stream'
import type { Dispatcher } from 'undici'
import { isLoopback } from '../base/loopback.js'
import type { Clock } from '../base/time.js'
import type { Entry, Header } from '../journal/delivery.js'
import { describeConnectionError } from '../base/connection-error.js'
import { forwardedHeaders } from './forwarded-headers.js'
import { statusOutcome } from './policy.js'
import { parseRetryAfter } from './retry-after.js'
import { StartOf } from './start-of.js'
import { type OpenTarget, type Result, unanswered } from './target.js'
import { withTimeLimit } from './time-limit.js'

export interface HttpTargetOptions {
  readonly clock: Clock
  /** Milliseconds for all of an attempt, from connecting to the end of the answer. */
  readonly limit: number
}

/** An answer is read to its end up to this many bytes, so that its connection can be used again; past it, it is cut off. */
const MAX_READ = 256 * 1024

/** Connections are kept for the next delivery of a burst only: on one that the target is just closing, a request is lost. */
const KEEP_ALIVE = { keepAliveTimeout: 1000, keepAliveMaxTimeout: 1000 }

interface Connections {
  readonly request: typeof import('undici').request
  readonly pool: Dispatcher
}

/**
 * Posts deliveries to an address: the recorded bytes and headers, once per attempt. Redirects are not followed. The
 * answer's status decides as soon as it is there; what then goes wrong with the answer's text changes nothing. Any
 * address but this machine's own is reached through the proxy that HTTP_PROXY, HTTPS_PROXY and NO_PROXY name.
 */
export function openHttpTarget(url: string, { clock, limit }: HttpTargetOptions): OpenTarget {
  const { origin, pathname, search, hostname, username, password } = new URL(url)
  const own = username === '' && password === '' ? [] : [basic(username, password)]
  const direct = isLoopback(hostname)
  let connections: Promise<Connections> | undefined

  const post = async (entry: Entry, attempt: number, signal: AbortSignal): Promise<Result> => {
    const { request, pool } = await (connections ??= connect(direct))
    const headers = [...forwardedHeaders(entry.headers, attempt), ...own]
    const response = await request(`${origin}${pathname}${search}`, {
      method: 'POST',
      headers: direct ? headers.flat() : grouped(headers),
      body: entry.body,
      dispatcher: pool,
      signal,
      // Ours is the only limit.
      headersTimeout: 0,
      bodyTimeout: 0,
    })
    const { statusCode: status } = response
    const [asked, date] = ['retry-after', 'date'].map((name) => [response.headers[name]].flat()[0])
    return {
      outcome: statusOutcome(status),
      status,
      answer: await startOf(response.body),
      error: null,
      retryAfter: parseRetryAfter(asked, date, clock()),
    }
  }

  return {
    deliver: (entry, attempt, { signal }) =>
      withTimeLimit(limit, signal, async (limited) => {
        try {
          return await post(entry, attempt, limited)
        } catch (error) {
          if (signal.aborted) return unanswered('killed', 'relay was stopped')
          if (limited.aborted) return unanswered('timed out', `no answer within ${limit / 1000} s`)
          return unanswered('unreachable', describeConnectionError(error))
        }
      }),
    async [Symbol.asyncDispose]() {
      const opened = await connections
      await opened?.pool.close()
    },
  }
}

async function connect(direct: boolean): Promise<Connections> {
  const { Agent, EnvHttpProxyAgent, request } = await import('undici')
  return { request, pool: direct ? new Agent(KEEP_ALIVE) : new EnvHttpProxyAgent(KEEP_ALIVE) }
}

async function startOf(body: Readable): Promise<Uint8Array> {
  const start = new StartOf()
  let read = 0
  try {
    for await (const chunk of body) {
      start.add(chunk)
      read += chunk.byteLength
      if (read > MAX_READ) break
    }
  } catch {
    // The status has been given.
  }
  return start.bytes
}

/** As an object, because undici's proxy agent makes one of a list and would keep one line of each name only. */
function grouped(headers: readonly Header[]): Record<string, string[]> {
  const lines = new Map<string, string[]>()
  for (const [name, value] of headers) lines.set(name, [...(lines.get(name) ?? []), value])
  return Object.fromEntries(lines)
}

/** The user name and password of the target's own address (RFC 7617). */
function basic(username: string, password: string): Header {
  const both = `${decoded(username)}:${decoded(password)}`
  return ['Authorization', `Basic ${Buffer.from(both).toString('base64')}`]
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
