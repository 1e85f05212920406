import { createHistogram } from 'node:perf_hooks'

/** Summary of many requests. */
export interface Totals {
  readonly requests: number
  readonly failed: number
  readonly seconds: number
  /** Requests a second. */
  readonly rate: number
  /** Milliseconds. */
  readonly latency: { readonly p50: number; readonly p90: number; readonly p99: number; readonly max: number }
  /** Number of requests per status, or per reason for none. */
  readonly answers: Readonly<Record<string, number>>
}

/** Answers counted separately; an error message with a port number would otherwise add one per request. */
const MAX_ANSWERS = 50

/** Counts answers in a fixed amount of memory. */
export class Tally {
  readonly #latency = createHistogram()
  readonly #answers = new Map<string, number>()
  readonly #start = performance.now()
  #requests = 0
  #failed = 0

  add(ms: number, answer: string, ok: boolean): void {
    this.#requests += 1
    if (!ok) this.#failed += 1
    this.#latency.record(Math.max(1, Math.round(ms * 1000)))
    const key = this.#answers.has(answer) || this.#answers.size < MAX_ANSWERS ? answer : 'other'
    this.#answers.set(key, (this.#answers.get(key) ?? 0) + 1)
  }

  get totals(): Totals {
    const seconds = (performance.now() - this.#start) / 1000
    const ms = (micros: number): number => Math.round(micros / 10) / 100
    const at = (percent: number): number => ms(this.#latency.percentile(percent))
    return {
      requests: this.#requests,
      failed: this.#failed,
      seconds: Math.round(seconds * 1000) / 1000,
      rate: Math.round(this.#requests / seconds),
      latency: { p50: at(50), p90: at(90), p99: at(99), max: ms(this.#latency.max) },
      answers: Object.fromEntries(this.#answers),
    }
  }
}
