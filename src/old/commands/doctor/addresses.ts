import { isLoopback } from '../../../base/loopback.js'
import type { CheckContext } from './context.js'
import { type CheckResult, fail, ok, skip } from './result.js'
import { redirectUri } from '../../session/public-address.js'

/** Whether a browser can pass from relay to the code host and back when it signs in. */
export function checkAddresses({ publicUrl, options, instance }: CheckContext): CheckResult {
  const reached = new URL(publicUrl)
  const back = new URL(options.baseUrl ?? publicUrl)
  if (reached.protocol === 'http:' && !isLoopback(reached.hostname))
    return fail(
      `${publicUrl} is not encrypted: others on the network can read codes and tokens`,
      `set RELAY_PUBLIC_URL=https://${reached.host}`,
    )
  if (isLoopback(reached.hostname) && isLoopback(back.hostname) && reached.hostname !== back.hostname)
    return fail(
      `relay is at ${reached.hostname} and the application at ${back.hostname}: a sign-in that starts at one cannot end at the other`,
      `set RELAY_PUBLIC_URL=${publicUrl.replace(reached.hostname, back.hostname)}`,
    )
  if (reached.port === '0') return skip('known when relay serve has chosen a port')
  const listening = instance ? new URL(instance.url).port : String(options.port)
  if (isLoopback(reached.hostname) && listening !== '0' && portOf(reached) !== listening)
    return fail(
      `the public address has port ${portOf(reached)}, but relay listens on ${listening}`,
      `set RELAY_PUBLIC_URL=${reached.protocol}//${reached.hostname}:${listening}`,
    )
  return ok(
    `sign-in returns to ${redirectUri(publicUrl, options.provider)}, then to ${options.baseUrl ?? publicUrl}`,
  )
}

function portOf({ port, protocol }: URL): string {
  return port || (protocol === 'https:' ? '443' : '80')
}
