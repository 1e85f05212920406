import { RelayError } from '../../../base/errors.js'
import { Secret } from '../../../base/secret.js'
import { secretPrint } from '../../../instance/registry.js'
import type { SendOnce } from '../../../net/send-once.js'
import { createProvider } from '../../../providers/open.js'
import { findSandboxClient } from '../../../sandbox/client.js'
import { createTokens } from '../../../tokens/tokens.js'
import { tilde } from '../../output/display-path.js'
import { readUser } from '../../session/user.js'
import { readSavedWebhookSecret, webhookSecretFile } from '../../settings/webhook-secret.js'
import { type CheckContext, commandFor } from './context.js'
import { type CheckResult, fail, ok, skip } from './result.js'

/** Somebody who has seen one delivery can guess a shorter secret offline. */
const MIN_SECRET = 20
/** A random text of that length has more different characters. */
const MIN_DIFFERENT = 8

/** Whether the webhook secret and the previous one are hard to guess, and how large a delivery may be. */
export function checkWebhookSecret({ options, folder, instance, origins }: CheckContext): CheckResult {
  const saved =
    options.webhookSecret === undefined ? readSavedWebhookSecret(folder, options.store)?.reveal() : undefined
  const secret = options.webhookSecret ?? saved
  const limit = (instance?.maxBody ?? options.maxBody).toLocaleString('en-US')
  const accepted = `accepts deliveries of up to ${limit} bytes (--max-body)`
  const differs =
    secret !== undefined && instance && secretPrint(instance, new Secret(secret)) !== instance.secretPrint
  if (differs)
    return fail(
      `${origins.webhookSecret?.text ?? tilde(webhookSecretFile(folder))} holds another secret than process ${instance.pid} has`,
      'set RELAY_WEBHOOK_SECRET to the secret that relay serve was started with',
    )
  if (secret === undefined && instance) return skip(`only process ${instance.pid} has it, which ${accepted}`)
  if (secret === undefined) return skip('none yet; relay serve makes one at its first start')
  const weak = [secret, options.webhookSecretPrevious].some((text) => text !== undefined && isWeak(text))
  if (weak)
    return fail(
      `too easy to guess: fewer than ${MIN_SECRET} characters, or too few different ones`,
      'set RELAY_WEBHOOK_SECRET=$(openssl rand -hex 32) here and at the code host',
    )
  const source = saved === undefined ? 'set' : 'made by relay'
  return ok(`${source}${instance ? `, the same as process ${instance.pid} has` : ''}; ${accepted}`)
}

function isWeak(secret: string): boolean {
  return secret.length < MIN_SECRET || new Set(secret).size < MIN_DIFFERENT
}

/** Whether users can sign in: relay, or its instance if one runs, has an OAuth client. */
export async function checkClient({
  options,
  instance,
  store,
  publicUrl,
}: CheckContext): Promise<CheckResult> {
  const { clientId, clientSecret, provider } = options
  if (store && instance && (await findSandboxClient(store, instance.providerUrl)))
    return ok("the sandbox's own")
  if (instance?.clientId) return ok(`process ${instance.pid} has client id ${instance.clientId}`)
  const missing = [
    ...(clientId === undefined ? ['RELAY_CLIENT_ID'] : []),
    ...(clientSecret === undefined ? ['RELAY_CLIENT_SECRET'] : []),
  ].join(' and ')
  if (instance?.clientId === null && provider !== 'sandbox')
    return fail(
      `process ${instance.pid} has no OAuth client: sign-in is off`,
      `set RELAY_CLIENT_ID and RELAY_CLIENT_SECRET and restart it: ${commandFor(options, 'serve')}`,
    )
  if (missing === '') return ok('RELAY_CLIENT_ID and RELAY_CLIENT_SECRET are set')
  if (provider === 'sandbox') return skip('the sandbox has its own')
  return fail(
    `${missing} not set: nobody can sign in`,
    `register an OAuth app at the code host with the callback ${redirectUri(publicUrl, provider)}, and set them`,
  )
}

/** The callback address, as registered at the code host. The value of port 0 is not known before relay listens. */
export function redirectUri(publicUrl: string, provider: string): string {
  return `${publicUrl.replace(/:0$/, ':<port>')}/auth/${provider}/callback`
}

interface TokenCheck {
  readonly now: number
  readonly sendOnce: SendOnce
  /** For the request to the code host, in milliseconds. */
  readonly timeLimit: number
  readonly signal: AbortSignal
}

/** Whether the user has an unexpired token of this code host that works. The token is sent only to the host it came from. */
export async function checkToken(
  context: CheckContext,
  { now, sendOnce, timeLimit, signal }: TokenCheck,
): Promise<CheckResult> {
  const { options, store } = context
  const { provider, providerUrl } = options
  const user = readUser(options)
  const login = commandFor(options, options.user === undefined ? 'login' : `login --user ${user}`)
  if (options.store === 'memory') return skip('only the instance has the tokens, in memory')
  const tokens = store && createTokens(store)
  const owner = await tokens?.get(user)
  if (!tokens || !owner) {
    const renewal = await tokens?.refreshable(user)
    return renewal ? checkRenewal(context, user) : fail(`${user} is not signed in`, login)
  }
  if (providerUrl === undefined) return skip('the code host is not known')
  const host = createProvider({ name: provider, url: providerUrl, sendOnce, timeLimit })
  if (owner.origin !== host.origin)
    return fail(`the token of ${user} is from ${owner.origin}, not ${host.origin}`, login)
  const expiry = `expires in ${remaining(owner.expiresAt - now)}`
  try {
    const { login: account } = await host.whoAmI(owner.accessToken, { signal })
    return ok(`${user} is signed in as ${account}; the token ${expiry}`)
  } catch (error) {
    if (!(error instanceof RelayError)) throw error
    if (error.kind === 'invalid_token') return fail(`the code host rejects the token of ${user}`, login)
    return skip(`the token of ${user} ${expiry}; relay could not check that it works (${error.message})`)
  }
}

/** Whether an expired token can be renewed, which needs the OAuth client, here or in the instance. */
async function checkRenewal(context: CheckContext, user: string): Promise<CheckResult> {
  const { state } = await checkClient(context)
  if (state === 'ok') return ok(`the token of ${user} has expired; its next use renews it`)
  return fail(
    `the token of ${user} has expired, and renewing it needs the OAuth client`,
    'set RELAY_CLIENT_ID and RELAY_CLIENT_SECRET, or start the relay that has them',
  )
}

/** A duration in the largest unit of which it has two or more. */
function remaining(ms: number): string {
  const minutes = Math.floor(ms / 60_000)
  if (minutes < 1) return 'less than a minute'
  if (minutes < 120) return `${minutes} min`
  return minutes < 48 * 60 ? `${Math.floor(minutes / 60)} h` : `${Math.floor(minutes / 1440)} days`
}
