import type { Clock } from './time.js'

/** Time limits and delays, which a test shortens. Milliseconds. */
export const LIMITS = {
  /** One call to the code host: long enough for a merge of a large repository, and an HTTP client still waits for our answer. */
  codeHost: 25_000,
  /** A whole call to the token endpoint: a person waits in front of a blank page, or other processes for a lock. */
  tokenEndpoint: 10_000,
  /** One attempt at an address. */
  http: 30_000,
  /** One run of a command. */
  command: 600_000,
  /** Between SIGTERM and SIGKILL of a command. */
  grace: 5000,
  /** The waits between the attempts at a target that asks for a retry. The first is short: a server that restarts answers 502 for a moment. */
  retries: [1000, 4000, 15_000, 40_000],
  /** The first wait for a target that is down. */
  probe: 1000,
  /** For a request's headers: a slower client is an attack or a broken link. */
  headers: 10_000,
  /** For a whole request: 25 MiB at 7 Mbit/s. */
  request: 30_000,
  /** Without a byte in either direction: an action takes up to 25 s, and a client that stops reading is cut off. */
  idle: 60_000,
  /** How long requests in flight may take to finish at the end: an action waits for the code host. */
  stop: 30_000,
  /** How long removing hooks at the end may take, all together. */
  removal: 5000,
  /** How often to look whether the user has signed in. */
  signInLook: 2000,
  /** How long a delivery may take to arrive once the code host was asked for it: usually a second or two. */
  arrival: 30_000,
  /** First look into the code host's log for a failure; each further one comes after twice that time. */
  logLook: 1000,
  /** Between two removals of old deliveries. */
  sweep: 60_000,
}
export type Limits = Readonly<typeof LIMITS>

/** What a test may replace around a relay. The program itself replaces nothing. */
export interface Seams {
  readonly clock?: Clock | undefined
  readonly random?: (() => number) | undefined
  readonly limits?: Partial<Limits> | undefined
  /** While it says so, each write fails as if the disk were full. */
  readonly storage?: { readonly fails: boolean } | undefined
}
