import { RelayError } from '../base/errors.js'
import { isSharedAddress } from '../base/shared-store.js'
import { PortInUseError } from '../http/port-in-use.js'
import { explainUnreachable, findInstances, unreachableError } from '../instance/running.js'
import type { Shell } from './command.js'
import type { Values } from './settings/parse.js'

/**
 * Completes the error of a start with the relay that uses the port. If that serves the same profile, another port does not
 * help, so the error says to stop it. Returns any other error unchanged.
 * @throws RelayError `settings` as `findInstances`; the signal's reason
 */
export async function explainPort(
  { signal }: Shell,
  { home, profile, store }: Values,
  error: unknown,
): Promise<unknown> {
  if (!(error instanceof PortInUseError)) return error
  const { running, unreachable } = await findInstances(home, { signal })
  const portOf = (url: string): number => Number(new URL(url).port)
  const silent = unreachable.find(({ record }) => portOf(record.url) === error.port)
  const sandboxed = running.find(
    ({ url, sandbox, providerUrl }) =>
      portOf(url) === error.port || (sandbox && portOf(providerUrl) === error.port),
  )
  const owner = sandboxed ?? silent?.record
  if (!owner) return error
  const what = portOf(owner.url) === error.port ? '' : ' with its sandbox'
  const where = `process ${owner.pid} serves profile ${owner.profile}${what} there`
  const unasked = sandboxed ? undefined : silent
  // With a shared store or in memory, several can serve a profile.
  if (owner.profile !== profile || store === 'memory' || isSharedAddress(store))
    return new PortInUseError(
      error,
      `in use: ${where}${unasked ? `: ${explainUnreachable(unasked).fix}` : ''}`,
      {
        cause: error,
      },
    )
  const ports = sandboxed?.sandbox ? 'other ports with --port and --sandbox-port' : 'another port with --port'
  const also = unasked ? `: ${unreachableError(unasked).message}` : ''
  return new RelayError(
    'unavailable',
    `Profile ${profile} is already served by process ${owner.pid} at ${owner.url}. Stop it, or choose another profile with --profile, and ${ports}${also}`,
    { cause: error },
  )
}
