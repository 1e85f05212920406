import type { Readable } from 'node:stream'

/** What a command may touch of the process. Tests give their own. */
export interface Context {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly cwd: string
  /** Where the user's own settings are kept. */
  readonly configFolder: string
  readonly stdin: Readable & { readonly isTTY?: boolean }
  readonly stdout: TextStream
  readonly stderr: TextStream
  /** Aborts at the first SIGINT or SIGTERM. */
  readonly signal: AbortSignal
  /** Has SIGHUP call `listener` from now on, instead of ending the process; returns what undoes that. */
  onHangup(listener: () => void): () => void
}

export interface TextStream {
  readonly isTTY?: boolean | undefined
  readonly columns?: number | undefined
  write(text: string | Uint8Array): unknown
}
