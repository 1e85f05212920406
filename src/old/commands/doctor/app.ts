import { RelayError } from '../../../base/errors.js'
import { sameAddress } from '../../../hooks/ensure.js'
import { listSavedHooks } from '../../../hooks/saved.js'
import type { HookDelivery } from '../../../providers/hooks.js'
import { createProvider } from '../../../providers/open.js'
import type { AppHook } from '../../../providers/registration.js'
import { findOwnApp, type OwnApp } from '../../../setup/own-app.js'
import { formatRepo } from '../../session/repo.js'
import { type CheckContext, commandFor } from './context.js'
import { type HooksCheck, ownAddresses } from './hooks.js'
import { type CheckResult, fail, ok, skip } from './result.js'

/** Repositories with hooks that the App is asked about at most. */
const MAX_HOOKS = 20

/** The App of the profile, if its own webhook sends here; undefined also if it cannot be read, which another check reports. */
export async function openApp(
  { options: { provider, providerUrl }, secrets }: CheckContext,
  { sendOnce, timeLimit }: HooksCheck,
): Promise<OwnApp | undefined> {
  if (!secrets || providerUrl === undefined) return undefined
  const host = createProvider({ name: provider, url: providerUrl, sendOnce, timeLimit })
  return findOwnApp(secrets, host).catch(() => undefined)
}

/** Whether the App's webhook has fitting settings, and what its last delivery was answered. Asks with the App's key. */
export async function checkApp(
  context: CheckContext,
  app: OwnApp,
  check: Pick<HooksCheck, 'signal'>,
): Promise<CheckResult> {
  try {
    return await inspect(context, app, check)
  } catch (error) {
    if (!(error instanceof RelayError)) throw error
    const { kind, message } = error
    if (kind !== 'gone' && kind !== 'forbidden')
      return skip(`that of ${app.slug} cannot be seen (${message})`)
    return fail(message, commandFor(context.options, 'setup --app-hook'))
  }
}

async function inspect(
  context: CheckContext,
  app: OwnApp,
  { signal }: Pick<HooksCheck, 'signal'>,
): Promise<CheckResult> {
  const [{ installations, installUrl }, hook, { deliveries }] = await Promise.all([
    app.describe({ signal }),
    app.hook({ signal }),
    app.log.page(undefined, { signal }),
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
  const doubled = await findDoubled(context, app, signal)
  if (doubled !== undefined)
    return fail(
      `${doubled} has a hook, and ${app.slug} is installed there: each delivery comes twice`,
      commandFor(options, `hook remove ${doubled}`),
    )
  if (installations === 0)
    return skip(`${app.slug} is installed on no repository yet: open ${installUrl} in a browser`)
  return judgeLast(app, deliveries)
}

/** A repository with a hook of the profile where the App is installed too. */
async function findDoubled(
  { store, options: { providerUrl } }: CheckContext,
  app: OwnApp,
  signal: AbortSignal,
): Promise<string | undefined> {
  if (!store || providerUrl === undefined) return undefined
  const hooks = await listSavedHooks(store, { origin: new URL(providerUrl).origin })
  const found = await Promise.all(
    hooks.slice(0, MAX_HOOKS).map((hook) => app.isInstalledOn(hook, { signal })),
  )
  const doubled = hooks.find((_, index) => found[index])
  return doubled && formatRepo(doubled)
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
