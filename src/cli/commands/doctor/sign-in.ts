import { RelayError } from '../../../base/errors.js'
import { Secret } from '../../../base/secret.js'
import { secretPrint } from '../../../instance/running.js'
import type { SendOnce } from '../../../net/client.js'
import { openHost } from '../../../codehost/hosts.js'
import { Tokens } from '../../../tokens/tokens.js'
import { roughly } from '../../output/time.js'
import { tilde } from '../../output/display-path.js'
import { readUser } from '../../session/user.js'
import { readSavedWebhookSecret, webhookSecretFile } from '../../settings/webhook-secret.js'
import { type CheckContext, commandFor } from './context.js'
import { findClient } from './oauth-client.js'
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
  const tokens = store && new Tokens(store)
  const owner = await tokens?.get(user)
  if (!tokens || !owner) {
    const renewal = await tokens?.refreshable(user)
    return renewal ? checkRenewal(context, user) : fail(`${user} is not signed in`, login)
  }
  if (providerUrl === undefined) return skip('the code host is not known')
  const host = openHost({ name: provider, url: providerUrl, sendOnce, timeLimit })
  if (owner.origin !== host.origin)
    return fail(`the token of ${user} is from ${owner.origin}, not ${host.origin}`, login)
  const expiry = `expires in ${roughly(owner.expiresAt - now)}`
  try {
    const { login: account } = await host.as(owner.accessToken, { signal }).facts()
    return ok(`${user} is signed in as ${account}; the token ${expiry}`)
  } catch (error) {
    if (!(error instanceof RelayError)) throw error
    if (error.kind === 'invalid_token') return fail(`the code host rejects the token of ${user}`, login)
    return skip(`the token of ${user} ${expiry}; relay could not check that it works (${error.message})`)
  }
}

/** Whether an expired token can be renewed, which needs the OAuth client, here or in the instance. */
async function checkRenewal(context: CheckContext, user: string): Promise<CheckResult> {
  const { state } = await findClient(context)
  if (state === 'ok') return ok(`the token of ${user} has expired; its next use renews it`)
  return fail(
    `the token of ${user} has expired, and renewing it needs the OAuth client`,
    `${commandFor(context.options, 'setup')}, or start the relay that has it`,
  )
}
