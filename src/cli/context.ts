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
  /** Makes the next signal end the process at once, for work that cannot stop between two steps. */
  endAtSignal(): void
  /**
   * Lets the process continue when its output cannot be written (disk full, pipe closed), and wait only briefly at its
   * end for output to be read. `listener` is called for the first failure.
   */
  continueWithoutOutput(listener: (error: Error) => void): void
  /** Calls `listener` at SIGHUP, which then does not end the process. Returns a function that removes it. */
  onHangup(listener: () => void): () => void
  /**
   * Calls `listener` with each key pressed while relay runs in the foreground. Ctrl-C, Ctrl-Z and Ctrl-\\ work as
   * usual. Returns a function that ends this; undefined without a terminal.
   */
  onKey(listener: (key: string) => void): (() => void) | undefined
  /**
   * Calls `listener` for a failed connection to which no part of relay listens, and keeps running. Returns a function
   * that removes it.
   */
  onConnectionError(listener: (error: Error) => void): () => void
}

export type HelpContext = Pick<Context, 'stdout' | 'stderr' | 'configFolder'>

export interface TextStream {
  readonly isTTY?: boolean | undefined
  readonly columns?: number | undefined
  readonly rows?: number | undefined
  write(text: string | Uint8Array): unknown
}
