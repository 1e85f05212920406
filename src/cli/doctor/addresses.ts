import { isLoopback } from '../../base/loopback.js'
import type { Facts } from './facts.js'
import { none, ok, wrong, type Verdict } from './finding.js'
import { redirectUri } from './sign-in.js'

/** Whether the addresses agree between which a browser goes when it signs in. */
export function checkAddresses(facts: Facts): Verdict {
  const { publicUrl, provider, options, instance } = facts
  const reached = new URL(publicUrl)
  const back = new URL(options.baseUrl ?? publicUrl)
  if (reached.protocol === 'http:' && !isLoopback(reached.hostname))
    return wrong(
      `${publicUrl} is not encrypted: codes and tokens could be read on the way`,
      `set RELAY_PUBLIC_URL=https://${reached.host}`,
    )
  if (isLoopback(reached.hostname) && isLoopback(back.hostname) && reached.hostname !== back.hostname)
    return wrong(
      `relay is ${reached.hostname} and the application ${back.hostname}: a sign-in begun at one does not end at the other`,
      `set RELAY_PUBLIC_URL=${publicUrl.replace(reached.hostname, back.hostname)}`,
    )
  if (reached.port === '0') return none('known once relay serve has taken a port')
  const listening = instance ? new URL(instance.url).port : String(facts.port)
  if (isLoopback(reached.hostname) && listening !== '0' && portOf(reached) !== listening)
    return wrong(
      `the public address says port ${portOf(reached)}, relay listens on ${listening}`,
      `set RELAY_PUBLIC_URL=${reached.protocol}//${reached.hostname}:${listening}`,
    )
  return ok(`sign-in returns to ${redirectUri(publicUrl, provider)}, then to ${options.baseUrl ?? publicUrl}`)
}

function portOf({ port, protocol }: URL): string {
  return port || (protocol === 'https:' ? '443' : '80')
}
