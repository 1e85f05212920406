import type { Clock } from './time.js'

/** Time limits and delays that a test shortens. Milliseconds. */
export interface Limits {
  /** One call to the code host: long enough for a merge of a large repository, and an HTTP client still waits for our answer. */
  readonly codeHost: number
  /** A whole call to the token endpoint: a person waits in front of a blank page, or other processes for a lock. */
  readonly tokenEndpoint: number
  /** One attempt at an address. */
  readonly http: number
  /** One run of a command. */
  readonly command: number
  /** Between SIGTERM and SIGKILL of a command. */
  readonly grace: number
  /** The waits between the attempts at a target that asks for a retry. */
  readonly retries: readonly number[]
  /** The first wait for a target that is down. */
  readonly probe: number
  /** For a request's headers: a slower client is an attack or a broken link. */
  readonly headers: number
  /** For a whole request: 25 MiB at 7 Mbit/s. */
  readonly request: number
  /** Without a byte in either direction: an action takes up to 25 s, and a client that stops reading is cut off. */
  readonly idle: number
  /** How long requests in flight may take to finish at the end: an action waits for the code host. */
  readonly stop: number
  /** How long removing hooks at the end may take, all together. */
  readonly removal: number
  /** How often to look whether the user has signed in. */
  readonly signInLook: number
  /** How long a delivery may take to arrive once the code host was asked for it: usually a second or two. */
  readonly arrival: number
  /** First look into the code host's log for a failure; each further one comes after twice that time. */
  readonly logLook: number
  /** Between two removals of old deliveries. */
  readonly sweep: number
}

export const LIMITS: Limits = {
  codeHost: 25_000,
  tokenEndpoint: 10_000,
  http: 30_000,
  command: 600_000,
  grace: 5000,
  // A minute in all. The first is short: a server that is just restarting answers 502 or 503 for a moment.
  retries: [1000, 4000, 15_000, 40_000],
  probe: 1000,
  headers: 10_000,
  request: 30_000,
  idle: 60_000,
  stop: 30_000,
  removal: 5000,
  signInLook: 2000,
  arrival: 30_000,
  logLook: 1000,
  sweep: 60_000,
}

/** What a test may replace around a relay. The program itself replaces nothing. */
export interface Seams {
  readonly clock?: Clock | undefined
  readonly random?: (() => number) | undefined
  readonly limits?: Partial<Limits> | undefined
  /** While it says so, each write fails as if the disk were full. */
  readonly storage?: { readonly fails: boolean } | undefined
}
