import { performance } from 'node:perf_hooks'
import type { Readable } from 'node:stream'
import { Agent, EnvHttpProxyAgent, request } from 'undici'
import type { Cancellable } from '../base/abort.js'
import { isLoopback } from '../base/loopback.js'
import { describeConnectionError } from '../base/connection-error.js'
import { StartOf } from '../dispatch/start-of.js'
import { withTimeLimit } from '../dispatch/time-limit.js'
import type { WebhookRequest } from '../webhook/intake.js'

/** What came back. */
export interface Answer {
  /** null when there was no answer; `error` then says why. */
  readonly status: number | null
  readonly error: string | null
  /** Milliseconds from connecting to the end of the answer. */
  readonly ms: number
  /** How it begins. */
  readonly body: Uint8Array
}

export interface Sender extends AsyncDisposable {
  /** Posts a request once, byte for byte. @throws the signal's reason when it aborts, and for nothing else. */
  send(request: WebhookRequest, options?: Cancellable): Promise<Answer>
}

/** As long as relay gives the targets it hands deliveries on to. */
const TIME_LIMIT_MS = 30_000
/** On a connection that the other side is just closing, a request is lost. */
const KEEP_ALIVE = { keepAliveTimeout: 1000, keepAliveMaxTimeout: 1000 }

/**
 * Sends to one address, over at most so many connections. Redirects are not followed. Any address but this machine's own
 * is reached through the proxy that HTTP_PROXY, HTTPS_PROXY and NO_PROXY name.
 */
export function openSender(url: string, connections: number): Sender {
  const direct = isLoopback(new URL(url).hostname)
  const options = { ...KEEP_ALIVE, connections, headersTimeout: 0, bodyTimeout: 0 }
  const pool = direct ? new Agent(options) : new EnvHttpProxyAgent(options)
  const post = async ({ headers, body }: WebhookRequest, signal: AbortSignal) => {
    // undici's proxy agent makes an object of a list and would keep one line of each name only.
    const lines = direct ? headers.flat() : grouped(headers)
    const { statusCode, body: answer } = await request(url, {
      method: 'POST',
      headers: lines,
      body,
      dispatcher: pool,
      signal,
    })
    return { status: statusCode, error: null, body: await startOf(answer) }
  }
  return {
    async send(outgoing, { signal = new AbortController().signal } = {}) {
      const start = performance.now()
      const got = await withTimeLimit(TIME_LIMIT_MS, signal, async (limited) => {
        try {
          return await post(outgoing, limited)
        } catch (error) {
          signal.throwIfAborted()
          const why = limited.aborted
            ? `no answer within ${TIME_LIMIT_MS / 1000} s`
            : describeConnectionError(error)
          return { status: null, error: why, body: new Uint8Array() }
        }
      })
      return { ...got, ms: performance.now() - start }
    },
    [Symbol.asyncDispose]: () => pool.close(),
  }
}

async function startOf(answer: Readable): Promise<Uint8Array> {
  const start = new StartOf()
  try {
    for await (const chunk of answer) start.add(chunk)
  } catch {
    // The status has been given.
  }
  return start.bytes
}

function grouped(headers: WebhookRequest['headers']): Record<string, string[]> {
  const lines = new Map<string, string[]>()
  for (const [name, value] of headers) lines.set(name, [...(lines.get(name) ?? []), value])
  return Object.fromEntries(lines)
}
