import type { Guard } from '../journal/guarded-write.js'

/** Whether a queue, or the profile with all of them, is still this process's own. */
export interface Owner {
  /** Aborts when it no longer is: forwarding stops, and attempts in flight are interrupted. */
  readonly lost: AbortSignal
  /**
   * Called before each attempt. Waits while it is not known.
   * @throws when it no longer is; {@link Owner.lost} has aborted then. RelayError `storage`.
   */
  assert(): Promise<void>
  /** Whether an attempt may be sent at this moment. */
  isCurrent(): boolean
  /** Refuses what is recorded when it no longer is. Default: the journal's own guard does. */
  readonly fence?: Guard | undefined
}
