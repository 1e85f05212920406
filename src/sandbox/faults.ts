import type { ContentfulStatusCode } from 'hono/utils/http-status'
import type { Clock } from '../base/time.js'

/** What of the sandbox can be made to fail. */
export type Operation = 'token' | 'user' | 'comment' | 'merge' | 'react'

/**
 * How an operation fails. `answer`: this is answered and nothing is done. `slow`: done `ms` milliseconds later, or not
 * at all if the client has gone by then. `reset`: the connection is reset and nothing is done. `reset-after`: it is
 * done, and the connection reset instead of an answer.
 */
export type Fault =
  | Answer
  | { readonly kind: 'slow'; readonly ms: number }
  | { readonly kind: 'reset' | 'reset-after' }

interface Answer {
  readonly kind: 'answer'
  readonly status: ContentfulStatusCode
  readonly headers?: Readonly<Record<string, string>>
  readonly body: string
}

/** The faults that have a name; every write to the repository `octo/fault-<name>` meets the fault. */
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

/** The faults that are set, in-process only: one-shot ones come first, in order, then the lasting one. */
export class Faults {
  readonly #clock: Clock
  readonly #closed = new AbortController()
  readonly #next = new Map<Operation, (FaultName | Fault)[]>()
  readonly #always = new Map<Operation, FaultName | Fault>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** The next call of `operation` fails so, once. */
  next(operation: Operation, fault: FaultName | Fault): void {
    this.#next.set(operation, [...(this.#next.get(operation) ?? []), fault])
  }

  /** Every call of `operation` fails so, until {@link clear}. */
  always(operation: Operation, fault: FaultName | Fault): void {
    this.#always.set(operation, fault)
  }

  /** Forgets every fault set here. */
  clear(): void {
    this.#next.clear()
    this.#always.clear()
  }

  /** The fault this call of `operation` meets, which is used up if it was a one-shot one. */
  take(operation: Operation, repo?: string): Fault | undefined {
    const fault = this.#next.get(operation)?.shift() ?? this.#always.get(operation) ?? faultOf(repo)
    return typeof fault === 'string' ? PRESETS[fault](this.#clock()) : fault
  }

  /** Aborts when the sandbox closes: no fault lasts longer. */
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

/** Longer than any client should wait for an answer. */
const SLOW_MS = 60_000
/** After how many seconds a client that ran into a limit may come back. */
const LIMIT_S = 60

const PRESETS: Readonly<Record<FaultName, (now: number) => Fault>> = {
  '502': () => answer(502, { 'Content-Type': 'text/html' }, BAD_GATEWAY),
  'rate-limit': (now) => answer(403, exhausted(now), refusal('API rate limit exceeded for user ID 1.')),
  'secondary-limit': () => answer(403, { ...JSON_TYPE, 'Retry-After': String(LIMIT_S) }, SECONDARY),
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
    'X-RateLimit-Reset': String(Math.ceil(now / 1000) + LIMIT_S),
  }
}

function refusal(message: string): string {
  return JSON.stringify({ message, documentation_url: 'https://docs.github.com/rest', status: '403' })
}
