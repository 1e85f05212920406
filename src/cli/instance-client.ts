import type { Cancellable } from '../base/wait.js'
import { RelayError } from '../base/errors.js'
import type { InstanceRecord } from '../instance/protocol.js'
import type { InstanceCalls } from '../server/instance.js'

/**
 * Time limit of a call: the instance itself waits 25 s for the code host, and 55 s for other renewals. Milliseconds.
 */
const ANSWER_LIMIT = 60_000

/**
 * Calls a profile's running instance, once.
 * @throws RelayError of the instance, of the same kind; `unavailable` without a complete response within a minute;
 * `cancelled`. The message says if the request may have been carried out
 */
export async function callInstance<Name extends keyof InstanceCalls>(
  instance: InstanceRecord,
  call: Name,
  args: Parameters<InstanceCalls[Name]> extends [infer Args extends object] ? Args : object,
  { signal }: Cancellable = {},
): Promise<Awaited<ReturnType<InstanceCalls[Name]>>> {
  signal?.throwIfAborted()
  const { askInstance, lostCall } = await import('../instance/client.js')
  try {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the instance has proved this response, and uses the same protocol
    return (await askInstance(instance, call, args, { limit: ANSWER_LIMIT, signal })) as Awaited<
      ReturnType<InstanceCalls[Name]>
    >
  } catch (cause) {
    if (signal?.aborted) throw interrupted(cause)
    throw cause instanceof RelayError ? cause : lostCall(instance, cause)
  }
}

/** Makes the error of a request that Ctrl-C interrupted after it was sent. */
export function interrupted(cause: unknown): RelayError {
  const text = 'Interrupted; the request may have been carried out all the same'
  return new RelayError('cancelled', text, { cause })
}
