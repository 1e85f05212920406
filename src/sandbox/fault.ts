/**
 * Operations of the sandbox that can be made to fail. `device`: requesting the codes of the device flow. `convert`:
 * exchanging the code of an App's manifest. `hook`: all calls about hooks except their delivery log, which is
 * `deliveries`, and `redeliver`. `checks`: checks and statuses. `push`: writing a file.
 */
export const OPERATIONS = [
  'token',
  'device',
  'convert',
  'user',
  'comment',
  'merge',
  'react',
  'hook',
  'deliveries',
  'redeliver',
  'checks',
  'push',
] as const
export type Operation = (typeof OPERATIONS)[number]

/**
 * Kinds of failure. `answer`: sends this response and does nothing. `slow`: runs `ms` milliseconds later, or not at all
 * if the client has disconnected by then. `late`: runs, and responds `ms` milliseconds later. `reset`: resets the
 * connection and does nothing. `reset-after`: runs, then resets the connection instead of responding.
 */
export type Fault =
  | {
      readonly kind: 'answer'
      readonly status: number
      readonly headers?: Readonly<Record<string, string>>
      readonly body: string
    }
  | { readonly kind: 'slow' | 'late'; readonly ms: number }
  | { readonly kind: 'reset' | 'reset-after' }

/**
 * Predefined faults. `502`: a gateway's error page. `rate-limit`: the hourly limit. `secondary-limit`: the limit on writing
 * too fast. `slow`: after a minute. `reset`, `reset-after`: as the kinds of {@link Fault}. `invalid-json`: a broken answer.
 */
export type FaultName =
  | '502'
  | 'rate-limit'
  | 'secondary-limit'
  | 'slow'
  | 'reset'
  | 'reset-after'
  | 'invalid-json'

/** Makes operations of the sandbox fail. */
export interface FaultControl {
  /** Makes the next call of `operation` fail, once. */
  next(operation: Operation, fault: FaultName | Fault): void
  /** Makes every call of `operation` fail until {@link clear}. */
  always(operation: Operation, fault: FaultName | Fault): void
  /** Removes every fault set here. */
  clear(): void
}
