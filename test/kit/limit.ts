/** How long a test waits for one thing, in milliseconds: far longer than a busy machine takes, so that it ends only what hangs. */
export const LIMIT_MS = 60_000
