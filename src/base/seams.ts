import type { Clock } from './time.js'

/** Default time limits and delays in milliseconds. Tests shorten them. */
export const TIME_LIMITS = {
  /**
   * One call to the code host. Long enough to merge in a large repository, and shorter than HTTP clients wait for
   * relay.
   */
  codeHost: 25_000,
  /** First delay before another attempt at a merge that the code host asked to try again. Each further delay is twice as long. */
  mergeDelay: 500,
  /**
   * Time after the first refusal in which a merge is tried again. GitHub and Gitea check whether a pull request can be
   * merged within some seconds; HTTP clients, which wait for relay too, wait at least a minute.
   */
  mergeTime: 15_000,
  /** One call to the token endpoint. A person waits in front of a blank page, or other processes for a lock. */
  tokenEndpoint: 10_000,
  /** One attempt at an HTTP target. */
  http: 30_000,
  /** Time without an answer of an HTTP target after which the next delivery is sent too. No program means to be that slow. */
  slow: 5000,
  /** One run of a command. */
  command: 600_000,
  /** Time between SIGTERM and SIGKILL of a command. */
  grace: 5000,
  /**
   * Delays before the retries that a target asks for. The first is short: a server that restarts answers 502 for a
   * moment.
   */
  retries: [1000, 4000, 15_000, 40_000],
  /** First delay for a target that is unreachable. */
  probe: 1000,
  /** Receiving a request's headers. A slower client is an attack or a broken link. */
  headers: 10_000,
  /** Receiving a whole request: 25 MiB at 7 Mbit/s. */
  request: 30_000,
  /**
   * Time without a byte in either direction. An action takes up to 25 s; a client that stops reading is disconnected.
   */
  idle: 60_000,
  /** Grace period for requests in flight at shutdown, since an action waits for the code host. */
  stop: 30_000,
  /** Removing all hooks at shutdown. */
  removal: 5000,
  /**
   * Time in which a hook that was replaced stays, for what the code host has queued for it. Gitea sends one delivery after
   * the other, and gives each receiver 5 s.
   */
  hookLeaves: 10_000,
  /** Interval between checks whether the user has signed in. */
  signInLook: 2000,
  /** Arrival of a delivery that the code host was asked to redeliver. Usually a second or two. */
  arrival: 30_000,
  /** First look for a failure in the code host's delivery log. Each further delay is twice as long. */
  logLook: 1000,
  /** Interval between removals of old deliveries. */
  sweep: 60_000,
  /** Interval between looks at the files of a certificate, which is renewed weeks before its end. */
  certificateLook: 10_000,
}
export type Limits = Readonly<typeof TIME_LIMITS>

/** Parts of a relay that a test may replace. The program itself replaces none. */
export interface Seams {
  readonly clock?: Clock | undefined
  readonly random?: (() => number) | undefined
  readonly limits?: Partial<Limits> | undefined
  /**
   * True: nothing of it keeps the process alive, neither a listener nor a connection, a timer or a command. Default: false.
   */
  readonly background?: boolean | undefined
  /** Simulates a full disk: every write fails while `fails` is true. */
  readonly storage?: { readonly fails: boolean } | undefined
}
