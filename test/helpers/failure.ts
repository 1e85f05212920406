/** The kind and message of the RelayError that `run` throws. Fails when it throws nothing. */
export function failure(run: () => unknown): { kind: unknown; message: unknown } {
  try {
    run()
  } catch (error) {
    const { kind, message } = Object(error)
    return { kind, message }
  }
  throw new Error('it did not fail')
}
