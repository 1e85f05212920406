import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import type { Context, MiddlewareHandler } from 'hono'
import { sleep } from '../base/wait.js'
import type { Clock } from '../base/time.js'
import { discardBody, type HttpEnv } from '../http/body.js'
import type { Fault, FaultControl, FaultName, Operation } from './fault.js'

/** Longer than any client should wait for a response. */
const SLOW_MS = 60_000
/** Seconds until a client that exceeded a limit may retry. */
const RETRY_AFTER_S = 60
const JSON_TYPE = { 'Content-Type': 'application/json; charset=utf-8' }

/**
 * Predefined faults, each with the description of its repository. Every write to `octo/fault-<name>` has that fault.
 */
const PRESET_FAULTS = {
  '502': {
    description: 'Writes are answered 502 Bad Gateway',
    at: () => {
      const body = '<html><head><title>502 Bad Gateway</title></head><body>Bad Gateway</body></html>'
      return answer(502, { 'Content-Type': 'text/html' }, body)
    },
  },
  'rate-limit': {
    description: 'Writes meet the hourly rate limit',
    at: (now) =>
      refusal('API rate limit exceeded for user ID 1.', {
        'X-RateLimit-Remaining': '0',
        'X-RateLimit-Used': '5000',
        'X-RateLimit-Reset': String(Math.ceil(now / 1000) + RETRY_AFTER_S),
      }),
  },
  'secondary-limit': {
    description: 'Writes meet the limit on writing too fast',
    at: () =>
      refusal('You have exceeded a secondary rate limit. Please wait a few minutes before you try again.', {
        'Retry-After': String(RETRY_AFTER_S),
      }),
  },
  slow: { description: 'Writes take a minute', at: () => ({ kind: 'slow', ms: SLOW_MS }) },
  reset: {
    description: 'The connection is reset before anything is written',
    at: () => ({ kind: 'reset' }),
  },
  'reset-after': {
    description: 'The connection is reset after the write was done',
    at: () => ({ kind: 'reset-after' }),
  },
  'invalid-json': {
    description: 'Writes are answered with broken JSON',
    at: () => answer(200, JSON_TYPE, '{"id":1,"html_url":"http'),
  },
} satisfies Record<FaultName, { description: string; at: (now: number) => Fault }>

export const PRESETS: ReadonlyMap<string, { readonly description: string; at(now: number): Fault }> = new Map(
  Object.entries(PRESET_FAULTS),
)

function answer(status: number, headers: Record<string, string>, body: string): Fault {
  return { kind: 'answer', status, headers, body }
}

function refusal(message: string, headers: Record<string, string>): Fault {
  const body = { message, documentation_url: 'https://docs.github.com/rest', status: '403' }
  return answer(403, { ...JSON_TYPE, ...headers }, JSON.stringify(body))
}

/** Faults set by code in this process. One-shot faults apply first, in order, then the permanent one. */
export class Faults implements FaultControl {
  readonly #clock: Clock
  readonly #background: boolean
  readonly #closed = new AbortController()
  readonly #next = new Map<Operation, (FaultName | Fault)[]>()
  readonly #always = new Map<Operation, FaultName | Fault>()

  /** @param background true: a slow operation does not keep the process alive */
  constructor(clock: Clock, background: boolean) {
    this.#clock = clock
    this.#background = background
  }

  next(operation: Operation, fault: FaultName | Fault): void {
    this.#next.set(operation, [...(this.#next.get(operation) ?? []), fault])
  }

  always(operation: Operation, fault: FaultName | Fault): void {
    this.#always.set(operation, fault)
  }

  clear(): void {
    this.#next.clear()
    this.#always.clear()
  }

  /** Ends every slow operation when the sandbox closes. */
  close(): void {
    this.#closed.abort()
  }

  /** Middleware that applies the fault set for the operation, or that of the route's repository. */
  inject(operation: Operation): MiddlewareHandler<HttpEnv> {
    return async (c, next) => {
      const fault = this.#take(operation, c.req.param())
      switch (fault?.kind) {
        case undefined:
          return next()
        case 'answer':
          await discardBody(c.env)
          return new Response(fault.body, { status: fault.status, headers: { ...fault.headers } })
        case 'slow':
          await this.#pause(c, fault.ms)
          return next()
        case 'late':
          await next()
          return this.#pause(c, fault.ms)
        case 'reset':
          return reset(c)
        case 'reset-after':
          await next()
          c.res = reset(c)
          return undefined
      }
    }
  }

  #take(operation: Operation, { owner, repo }: Record<string, string>): Fault | undefined {
    const [, ofRepo = ''] = /^octo\/fault-(.+)$/.exec(`${owner}/${repo}`) ?? []
    const fault = this.#next.get(operation)?.shift() ?? this.#always.get(operation) ?? ofRepo
    return typeof fault === 'string' ? PRESETS.get(fault)?.at(this.#clock()) : fault
  }

  /** Waits until the time has passed, the client disconnects, or the sandbox closes. */
  #pause(c: Context<HttpEnv>, ms: number): Promise<void> {
    const signal = AbortSignal.any([c.req.raw.signal, this.#closed.signal])
    return sleep(ms, { signal, ref: !this.#background })
  }
}

/** Resets the client's connection. An in-process call, which has none, fails like a bug. */
function reset(c: Context<HttpEnv>): Response {
  c.env.incoming.socket.resetAndDestroy()
  return RESPONSE_ALREADY_SENT
}
