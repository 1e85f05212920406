import type { Readable } from 'node:stream'
import type { Seams } from '../base/seams.js'

export interface Context {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly cwd: string
  readonly configFolder: string
  readonly stdin: Readable & { readonly isTTY?: boolean }
  readonly stdout: TextStream
  readonly stderr: TextStream
  readonly seams?: Seams | undefined
  /** Aborts at the first SIGINT or SIGTERM. */
  readonly signal: AbortSignal
  /** From now on, the first signal ends the process at once: for work that cannot stop between two steps. */
  endAtSignal(): void
  /**
   * From now on the process outlives output that cannot be written (disk full, pipe closed), and at its end waits only for a moment for
   * output to be read. `listener`: for the first failure.
   */
  continueWithoutOutput(listener: (error: Error) => void): void
  /** Calls `listener` at SIGHUP, which then does not end the process. Returns a function that removes it. */
  onHangup(listener: () => void): () => void
  /**
   * Calls `listener` with each key pressed while relay runs in the foreground; Ctrl-C, Ctrl-Z and Ctrl-\\ do what they always do. Returns
   * what ends that; undefined without a terminal.
   */
  onKey(listener: (key: string) => void): (() => void) | undefined
  /** Calls `listener` for a failed connection to which no part of relay listens, and keeps running. Returns what removes it. */
  onConnectionError(listener: (error: Error) => void): () => void
}

export type HelpContext = Pick<Context, 'stdout' | 'stderr' | 'configFolder'>

export interface TextStream {
  readonly isTTY?: boolean | undefined
  readonly columns?: number | undefined
  readonly rows?: number | undefined
  write(text: string | Uint8Array): unknown
}
