import { OwnApp } from '../../../auth/setup.js'
import { RelayError } from '../../../base/errors.js'
import type { AppHook, HookDelivery } from '../../../codehost/host.js'
import { sameAddress } from '../../../codehost/hooks.js'
import { openHost } from '../../../codehost/hosts.js'
import { type CheckContext, commandFor } from './context.js'
import { type HooksCheck, ownAddresses } from './hooks.js'
import { type CheckResult, fail, ok, skip } from './result.js'

/** The App of the profile, if its own webhook sends here; undefined also if it cannot be read, which another check reports. */
export async function openApp(
  { options: { provider, providerUrl }, secrets }: CheckContext,
  { sendOnce, timeLimit, signal }: HooksCheck,
): Promise<OwnApp | undefined> {
  if (!secrets || providerUrl === undefined) return undefined
  const host = openHost({ name: provider, url: providerUrl, sendOnce, timeLimit })
  return OwnApp.find(secrets, host, { signal }).catch(() => undefined)
}

/** Whether the App's webhook has fitting settings, and what its last delivery was answered. Asks with the App's key. */
export async function checkApp(context: CheckContext, app: OwnApp): Promise<CheckResult> {
  try {
    return await inspect(context, app)
  } catch (error) {
    if (!(error instanceof RelayError)) throw error
    const { kind, message } = error
    if (kind !== 'gone' && kind !== 'forbidden')
      return skip(`that of ${app.slug} cannot be seen (${message})`)
    return fail(message, commandFor(context.options, 'setup --app-hook'))
  }
}

async function inspect(context: CheckContext, app: OwnApp): Promise<CheckResult> {
  const [{ installations, installUrl }, hook, { deliveries }] = await Promise.all([
    app.describe(),
    app.hook(),
    app.log.page(),
  ])
  const { instance, options } = context
  // Without an instance, the address of its tunnel is not known.
  const here = instance ? await ownAddresses(context) : [app.savedUrl]
  const problem = problemOf(hook, here)
  if (problem !== undefined)
    return fail(
      `the webhook of ${app.slug} ${problem}`,
      `${instance ? 'restart' : 'run'} ${commandFor(options, 'serve')}, which corrects it`,
    )
  if (installations === 0)
    return skip(`${app.slug} is installed on no repository yet: open ${installUrl} in a browser`)
  return judgeLast(app, deliveries)
}

function problemOf({ url, contentType, hasSecret }: AppHook, here: readonly string[]): string | undefined {
  if (!here.some((one) => sameAddress(one, url))) return `leads to ${url}, not to ${here.join(' or ')}`
  if (!hasSecret) return 'has no secret, so that relay refuses its deliveries'
  return contentType === 'json' ? undefined : `sends ${contentType}, not JSON`
}

/** A ping came before relay had agreed with the App on a secret. Whether the webhook is active, only its deliveries show. */
function judgeLast({ slug }: OwnApp, deliveries: readonly HookDelivery[]): CheckResult {
  const last = deliveries.find(({ event }) => event !== 'ping')
  if (!last) return ok(`the webhook of ${slug} fits; it has sent nothing for 3 days`)
  const { statusCode, status } = last
  if (statusCode >= 200 && statusCode < 300)
    return ok(`the webhook of ${slug} fits, and its last delivery was answered`)
  return statusCode === 401
    ? fail(
        `the webhook of ${slug} signed its last delivery with another secret: it was answered 401`,
        'restart relay serve, which gives it the secret of this profile',
      )
    : fail(
        `the last delivery of ${slug} failed: ${statusCode} ${status}`,
        'start relay serve --catch-up, which gets what was missed',
      )
}
