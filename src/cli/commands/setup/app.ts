import { randomBytes } from 'node:crypto'
import { runManifestFlow } from '../../../auth/manifest-flow.js'
import { RelayError, toRelayError } from '../../../base/errors.js'
import { Secret } from '../../../base/secret.js'
import type { Apps, RegisteredApp } from '../../../codehost/host.js'
import { showAddress } from '../../browser/show-address.js'
import type { Context } from '../../context.js'
import type { Attached } from '../../session/attach.js'
import { profileFolder } from '../../settings/complete.js'
import { adoptWebhookSecret, readSavedWebhookSecret } from '../../settings/webhook-secret.js'
import { webhookOf } from './app-webhook.js'
import type { SetupFlags } from './flags.js'
import type { SetupPlan } from './plan.js'

const WAITING = 'Waiting up to 15 minutes for you to register the App there. Ctrl-C cancels.'

/** Registers an App in the browser. `save` stores it before the browser's page says so. */
export async function registerApp(
  context: Context,
  flags: SetupFlags,
  { attached, plan, apps, save }: AppSetup,
): Promise<RegisteredApp> {
  const hook = await webhookOf(attached, flags.appHook === true)
  const { output } = attached
  const registered = await runManifestFlow({
    apps,
    providerUrl: plan.host.url,
    organization: flags.org,
    // GitHub's names of Apps are unique in all of GitHub.
    app: { name: `relay-${randomBytes(4).toString('hex')}`, callbackUrl: plan.callbackUrl, hook },
    log: output.log,
    signal: context.signal,
    onListening: (address) =>
      showAddress(context, output, { address, opens: flags.browser !== false, waiting: WAITING }),
    store: (one) => save(one, hook?.active ? hook.url : undefined),
  })
  await agreeOnSecret(attached, apps, registered)
  return registered
}

export interface AppSetup {
  readonly attached: Attached
  readonly plan: SetupPlan
  readonly apps: Apps
  /** `hookUrl`: the address of its webhook, if that is active. */
  readonly save: (registered: RegisteredApp, hookUrl: string | undefined) => Promise<void>
}

/**
 * Has the App's webhook sign with the profile's secret, which hooks at the code host may have already. A profile without one adopts
 * that of the App. A failure is a warning, since the App itself is registered.
 */
async function agreeOnSecret(
  { options, output }: Attached,
  apps: Apps,
  { app, webhookSecret }: RegisteredApp,
): Promise<void> {
  if (!webhookSecret) return
  const folder = profileFolder(options)
  try {
    const { webhookSecret: given } = options
    const own = given === undefined ? readSavedWebhookSecret(folder, options.store) : new Secret(given)
    const secret = own ?? adoptWebhookSecret(folder, webhookSecret)
    if (secret.reveal() !== webhookSecret.reveal()) await apps.as(app).changeHook({ secret })
  } catch (error) {
    const { message } = toRelayError(error)
    const next = 'Enter the secret that relay config --reveal webhookSecret prints in the settings of the App'
    output.log.warn(`the App's webhook has another secret than this profile: ${message}. ${next}`)
  }
}

/** @throws RelayError `usage` */
export function checkAppFlags({ appHook, org }: SetupFlags, isApp: boolean): void {
  if (!isApp && (appHook || org !== undefined))
    throw new RelayError('usage', '--app-hook and --org are for a GitHub App only')
}
