import type { Cancellable } from '../base/wait.js'
import { RelayError } from '../base/errors.js'
import { askInstance, lostCall } from '../instance/client.js'
import type { InstanceRecord } from '../instance/protocol.js'
import type { InstanceCalls } from '../server/instance.js'

/** 60 s: the instance itself gives the code host 25, and a renewal that waits for others 55. */
const ANSWER_LIMIT = 60_000

/**
 * Asks a profile's running instance for what only it knows or can do, once.
 * @throws RelayError as the instance, of the same kind; `unavailable` when no whole answer comes within a minute; `cancelled`. The text says
 * so where the request may have been carried out
 */
export async function callInstance<Name extends keyof InstanceCalls>(
  instance: InstanceRecord,
  call: Name,
  args: Parameters<InstanceCalls[Name]> extends [infer Args extends object] ? Args : object,
  { signal }: Cancellable = {},
): Promise<Awaited<ReturnType<InstanceCalls[Name]>>> {
  signal?.throwIfAborted()
  try {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the instance has proved this answer, and is of the same protocol
    return (await askInstance(instance, call, args, { limit: ANSWER_LIMIT, signal })) as Awaited<
      ReturnType<InstanceCalls[Name]>
    >
  } catch (cause) {
    if (signal?.aborted) throw interrupted(cause)
    throw cause instanceof RelayError ? cause : lostCall(instance, cause)
  }
}

/** The error of a request that Ctrl-C interrupted after it was sent. */
export function interrupted(cause: unknown): RelayError {
  const text = 'Interrupted; the request may have been carried out all the same'
  return new RelayError('cancelled', text, { cause })
}
