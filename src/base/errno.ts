/** The code of an error from the system or from Node, such as `ENOENT`; undefined for any other error. */
export function errorCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error ? String(error.code) : undefined
}

/** The code of such an error for a message, or `unknown reason`. */
export function errorReason(error: unknown): string {
  return errorCode(error) ?? 'unknown reason'
}
