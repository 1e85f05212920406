import { TokenEndpoint } from '../../../auth/token-endpoint.js'
import { Secret } from '../../../base/secret.js'
import { openHost } from '../../../codehost/hosts.js'
import type { SendOnce } from '../../../net/client.js'
import { findSandboxClient } from '../../../sandbox/client.js'
import { type CheckContext, commandFor } from './context.js'
import { type CheckResult, fail, ok, skip } from './result.js'

interface ClientCheck {
  readonly sendOnce: SendOnce
  /** For the request to the code host, in milliseconds. */
  readonly timeLimit: number
  readonly signal: AbortSignal
}

/** Whether users can sign in: relay, or its instance if one runs, has an OAuth client, and the code host knows it. */
export async function checkClient(context: CheckContext, check: ClientCheck): Promise<CheckResult> {
  const { options, origins } = context
  const result = await findClient(context)
  const { clientId, clientSecret, provider, providerUrl } = options
  const isAskable = clientId !== undefined && clientSecret !== undefined && providerUrl !== undefined
  if (result.state !== 'ok' || !isAskable) return result
  const { oauth } = openHost({ name: provider, url: providerUrl })
  const client = { id: clientId, secret: new Secret(clientSecret) }
  const isKnown = await new TokenEndpoint(oauth, client, check).knowsClient()
  if (isKnown === undefined) return ok(`${result.text}; ${providerUrl} did not say whether it knows it`)
  if (isKnown) return ok(`${result.text}; ${providerUrl} knows it`)
  const isStored = origins.clientSecret?.kind === 'setup'
  return fail(
    `${providerUrl} does not know client ${clientId}, or its secret`,
    isStored ? commandFor(options, 'setup') : 'correct RELAY_CLIENT_ID and RELAY_CLIENT_SECRET',
  )
}

/** Whether relay, or its instance if one runs, has an OAuth client. Asks nothing. */
export async function findClient({
  options,
  origins,
  instance,
  secrets,
}: CheckContext): Promise<CheckResult> {
  const { clientId, clientSecret, provider } = options
  if (instance?.provider === 'sandbox' && secrets && (await findSandboxClient(secrets, instance.providerUrl)))
    return ok("the sandbox's own")
  if (instance?.clientId) return ok(`process ${instance.pid} has client id ${instance.clientId}`)
  const isHere = clientId !== undefined && clientSecret !== undefined
  if (instance?.clientId === null && (provider !== 'sandbox' || isHere))
    return fail(
      `process ${instance.pid} has no OAuth client: sign-in is off`,
      isHere
        ? `restart ${commandFor(options, 'serve')}`
        : `${commandFor(options, 'setup')}, then restart relay serve`,
    )
  if (isHere) return ok(`client id ${clientId} (${origins.clientSecret?.text ?? origins.clientId?.text})`)
  if (provider === 'sandbox') return skip('the sandbox has its own')
  const missing = [
    ...(clientId === undefined ? ['RELAY_CLIENT_ID'] : []),
    ...(clientSecret === undefined ? ['RELAY_CLIENT_SECRET'] : []),
  ].join(' and ')
  return fail(`${missing} not set: no user can sign in`, commandFor(options, 'setup'))
}
