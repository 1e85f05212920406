import type { Owner } from '../dispatch/owner.js'

/** What one relay of a profile does at a time: the queue of a target, the tunnel and the hooks, the sweep. */
export interface Duties {
  /**
   * Calls `start` whenever this relay has the duty, and disposes of what it returns when it no longer has. Disposing of what this
   * returns ends it, so that another relay can have the duty. Where no other relay can have it, this rejects as `start` does;
   * elsewhere a failure is logged, and `start` is called again.
   */
  run(duty: Duty): Promise<AsyncDisposable>
}

export interface Duty {
  /** The same in all relays. */
  readonly name: string
  /** For messages: `forwarding to http://localhost:3000`. */
  readonly what: string
  readonly start: (owner: Owner) => Promise<Doing>
  /** Called when another relay has it, once until this relay has it again. */
  readonly onElsewhere?: () => void
}

/** A duty that is being done. */
export interface Doing extends AsyncDisposable {
  /** Whether it can pass to another relay now without interrupting anything. Default: it cannot. */
  isIdle?(): boolean
}

/** The prefix of a queue's duty; the target's id follows. */
export const QUEUE_DUTY = 'queue:'
/** The tunnel, and the hooks that may have its address. */
export const SOURCES_DUTY = 'sources'
export const SWEEP_DUTY = 'sweep'
