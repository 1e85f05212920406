import type { Step } from './sql.js'

/** A relay that has not renewed its leases for so long may lose them to another one. Milliseconds, by the database's clock. */
export const SILENCE_MS = 3000
/** How often a relay renews its leases, in milliseconds: two may fail before it is silent. */
export const BEAT_MS = 1000

/** What one of several relays may run at a time: the queue of a target, the tunnel, the sweep. */
export interface LeaseRow {
  readonly name: string
  /** Higher each time that it is taken. */
  readonly epoch: number
  /** The relay that holds it; null when it is free. */
  readonly holder: string | null
  /** Milliseconds since it was last renewed. */
  readonly silent: number
  /** Whether this relay holds it, and has just renewed it. */
  readonly held: boolean
}

/** What another relay has done. */
export type Notice =
  | {
      readonly kind: 'journal'
      /** The number of the newest entry. */
      readonly newest: number
      /** About how many bytes were added. */
      readonly bytes: number
      /** What the writer announced of older entries; undefined where it was too much. */
      readonly words: readonly string[] | undefined
    }
  /** Leases were given back. */
  | { readonly kind: 'leases' }

export interface LeaseListener {
  /** Must not throw. */
  readonly onNotice: (notice: Notice) => void
  /** Called when the connection begins to listen, also again after a break, during which notices were lost. Must not throw. */
  readonly onListening: () => void
}

/**
 * The leases of a database that several relays share, for one of them. Every method rejects with RelayError `storage` when the
 * database fails or does not answer in time.
 */
export interface Leases extends AsyncDisposable {
  /** The name of this relay, which no other one has. */
  readonly holder: string
  /** Whom to tell what other relays do, from now on. To be called once, before {@link Leases.beat}. */
  listen(listener: LeaseListener): void
  /** Renews all that this relay holds, and returns all leases. Waits for no other transaction. */
  beat(): Promise<readonly LeaseRow[]>
  /** Takes those that are free or whose holder is silent. Resolves to the epochs of those that it got, by name. */
  claim(names: readonly string[]): Promise<ReadonlyMap<string, number>>
  /** The step that is required to find this lease held by this relay, with this epoch; see {@link Step.required}. */
  fence(name: string, epoch: number): Step
  /** Gives back some that it holds, and tells the other relays. */
  release(names: readonly string[]): Promise<void>
  /** Deletes the rows of these names, if this relay or a silent one holds them. */
  forget(names: readonly string[]): Promise<void>
  /** Ends the connections of a relay that is silent, where this is permitted: one may hold up all others. */
  disconnect(holder: string): Promise<void>
}
