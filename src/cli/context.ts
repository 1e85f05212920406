/** What a command may touch of the process. Tests give their own. */
export interface Context {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly cwd: string
  readonly stdout: TextStream
  readonly stderr: TextStream
  /** Aborts at the first SIGINT or SIGTERM. */
  readonly signal: AbortSignal
}

export interface TextStream {
  readonly isTTY?: boolean
  readonly columns?: number
  write(text: string): unknown
}
