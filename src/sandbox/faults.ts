import type { ContentfulStatusCode } from 'hono/utils/http-status'
import type { Clock } from '../base/time.js'

/**
 * Operations of the sandbox that can be made to fail. `device`: asking for the codes of the device flow. `convert`: exchanging the
 * code of an App's manifest. `hook`: everything about hooks except their delivery log, which is `deliveries`, and `redeliver`.
 * `checks`: checks and statuses. `push`: writing a file.
 */
export type Operation =
  | 'token'
  | 'device'
  | 'convert'
  | 'user'
  | 'comment'
  | 'merge'
  | 'react'
  | 'hook'
  | 'deliveries'
  | 'redeliver'
  | 'checks'
  | 'push'

/**
 * How an operation fails. `answer`: it sends this response and does nothing. `slow`: it runs `ms` milliseconds later, or
 * not at all if the client has disconnected by then. `late`: it runs, and responds `ms` milliseconds later. `reset`: it resets
 * the connection and does nothing. `reset-after`: it runs, then resets the connection instead of responding.
 */
export type Fault =
  | Answer
  | { readonly kind: 'slow' | 'late'; readonly ms: number }
  | { readonly kind: 'reset' | 'reset-after' }

interface Answer {
  readonly kind: 'answer'
  readonly status: ContentfulStatusCode
  readonly headers?: Readonly<Record<string, string>>
  readonly body: string
}

/** Predefined faults. Every write to the repository `octo/fault-<name>` has that fault. */
export const FAULT_NAMES = [
  '502',
  'rate-limit',
  'secondary-limit',
  'slow',
  'reset',
  'reset-after',
  'invalid-json',
] as const
export type FaultName = (typeof FAULT_NAMES)[number]

/** Faults set by code in this process. One-shot faults apply first, in order, then the permanent one. */
export class Faults {
  readonly #clock: Clock
  readonly #closed = new AbortController()
  readonly #next = new Map<Operation, (FaultName | Fault)[]>()
  readonly #always = new Map<Operation, FaultName | Fault>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Makes the next call of `operation` fail, once. */
  next(operation: Operation, fault: FaultName | Fault): void {
    this.#next.set(operation, [...(this.#next.get(operation) ?? []), fault])
  }

  /** Makes every call of `operation` fail until {@link clear}. */
  always(operation: Operation, fault: FaultName | Fault): void {
    this.#always.set(operation, fault)
  }

  /** Removes every fault set here. */
  clear(): void {
    this.#next.clear()
    this.#always.clear()
  }

  /** Returns the fault for this call of `operation`, and uses it up if it is one-shot. */
  take(operation: Operation, repo?: string): Fault | undefined {
    const fault = this.#next.get(operation)?.shift() ?? this.#always.get(operation) ?? faultOf(repo)
    return typeof fault === 'string' ? PRESETS[fault](this.#clock()) : fault
  }

  /** Aborts when the sandbox closes, which ends every slow operation. */
  get signal(): AbortSignal {
    return this.#closed.signal
  }

  close(): void {
    this.#closed.abort()
  }
}

function faultOf(repo: string | undefined): FaultName | undefined {
  return FAULT_NAMES.find((name) => repo === `octo/fault-${name}`)
}

/** Longer than any client should wait for a response. */
const SLOW_MS = 60_000
/** Seconds until a client that exceeded a limit may retry. */
const RETRY_AFTER_S = 60

const PRESETS: Readonly<Record<FaultName, (now: number) => Fault>> = {
  '502': () => answer(502, { 'Content-Type': 'text/html' }, BAD_GATEWAY),
  'rate-limit': (now) => answer(403, exhausted(now), refusal('API rate limit exceeded for user ID 1.')),
  'secondary-limit': () => answer(403, { ...JSON_TYPE, 'Retry-After': String(RETRY_AFTER_S) }, SECONDARY),
  slow: () => ({ kind: 'slow', ms: SLOW_MS }),
  reset: () => ({ kind: 'reset' }),
  'reset-after': () => ({ kind: 'reset-after' }),
  'invalid-json': () => answer(200, JSON_TYPE, '{"id":1,"html_url":"http'),
}

const JSON_TYPE = { 'Content-Type': 'application/json; charset=utf-8' }
const BAD_GATEWAY = '<html><head><title>502 Bad Gateway</title></head><body>Bad Gateway</body></html>'
const SECONDARY = refusal(
  'You have exceeded a secondary rate limit. Please wait a few minutes before you try again.',
)

function answer(status: ContentfulStatusCode, headers: Record<string, string>, body: string): Fault {
  return { kind: 'answer', status, headers, body }
}

function exhausted(now: number): Record<string, string> {
  return {
    ...JSON_TYPE,
    'X-RateLimit-Remaining': '0',
    'X-RateLimit-Used': '5000',
    'X-RateLimit-Reset': String(Math.ceil(now / 1000) + RETRY_AFTER_S),
  }
}

function refusal(message: string): string {
  return JSON.stringify({ message, documentation_url: 'https://docs.github.com/rest', status: '403' })
}
