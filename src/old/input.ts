import { errorReason } from '../base/errno.js'
import { RelayError } from '../base/errors.js'
import { TooManyBytes } from '../base/read-bounded.js'

export interface InputOptions {
  /** For messages: `Standard input`. */
  readonly name: string
  /** What an input beyond the limit is, for messages: `larger than 1 MiB`. */
  readonly tooLarge: string
  /** The signal that ends reading. */
  readonly signal: AbortSignal
}

/**
 * Runs `read`, which reads standard input or a file within a limit.
 * @throws RelayError `too_large` for `TooManyBytes`, `usage` for any other failure; AbortError when the signal aborts.
 */
export async function readInput<Result>(
  read: () => Promise<Result>,
  { name, tooLarge, signal }: InputOptions,
): Promise<Result> {
  try {
    return await read()
  } catch (cause) {
    if (signal.aborted) throw cause
    if (cause instanceof TooManyBytes) throw new RelayError('too_large', `${name} is ${tooLarge}`)
    throw new RelayError('usage', `${name} cannot be read (${errorReason(cause)})`, { cause })
  }
}
