import { saveSetup } from '../../../auth/setup.js'
import { RelayError } from '../../../base/errors.js'
import type { OAuthClient } from '../../../base/settings.js'
import type { RegisteredApp } from '../../../codehost/host.js'
import { openDatabase } from '../../../store/open.js'
import type { Context } from '../../context.js'
import { canAsk, Prompt } from '../../prompt.js'
import { type Attached, attach } from '../../session/attach.js'
import { remember } from '../../session/publish.js'
import { readSetup, type StoredClient } from '../../settings/stored.js'
import { diagnose } from '../doctor/diagnose.js'
import { printChecks } from '../doctor/print.js'
import { checkAppFlags, registerApp } from './app.js'
import type { SetupFlags } from './flags.js'
import { registerByHand, registerWithToken } from './oauth-app.js'
import { planSetup, type SetupPlan } from './plan.js'

/** What was registered. */
interface Registered {
  readonly client: OAuthClient
  readonly app?: Pick<RegisteredApp, 'app' | 'installUrl'>
}

/** Runs `relay setup`. */
export async function runSetup(context: Context, flags: SetupFlags): Promise<void> {
  const attached = await attach(context, flags, { mayCreate: 'always' })
  const plan = planSetup(attached)
  const isApp = plan.host.apps !== undefined && !flags.oauthApp
  checkAppFlags(flags, isApp)
  const registered = await register(context, flags, attached, plan)
  await report(context, flags, attached, registered)
}

/** Registers at the code host, and stores the result. Nothing is stored before. */
async function register(
  context: Context,
  flags: SetupFlags,
  attached: Attached,
  plan: SetupPlan,
): Promise<Registered> {
  const { host, settings } = plan
  const { output } = attached
  using prompt = new Prompt(context)
  const before = await readSetup(attached.options, { create: true })
  if (before) await agreeToReplace(context, flags, before, prompt)
  const save = async (client: OAuthClient, app?: RegisteredApp, hookUrl?: string): Promise<void> => {
    const place = { provider: host.name, providerUrl: host.url }
    // Opened only now: a setup that is cancelled leaves no profile behind.
    await using database = await openDatabase({ kind: settings.store, folder: settings.folder })
    await saveSetup(database.secrets, { ...place, client, app: app?.app, hookUrl }, before)
    if (!attached.instance) remember(attached, settings, false)
  }
  const { apps } = host
  if (apps && !flags.oauthApp) {
    const keep = (one: RegisteredApp, hookUrl: string | undefined): Promise<void> =>
      save(one.client, one, hookUrl)
    const app = await registerApp(context, flags, { attached, plan, apps, save: keep })
    return { client: app.client, app }
  }
  const client =
    (flags.oauthApp ? undefined : await registerWithToken(plan, context, prompt)) ??
    (await registerByHand(context, flags, plan, { output, prompt }))
  await save(client)
  return { client }
}

/** @throws RelayError `usage` where there is no terminal to ask on; `cancelled` for any answer but yes */
async function agreeToReplace(
  context: Context,
  { yes }: SetupFlags,
  { client, providerUrl }: StoredClient,
  prompt: Prompt,
): Promise<void> {
  if (yes) return
  const existing = `This profile has the client ${client.id} of ${providerUrl}`
  if (!canAsk(context))
    throw new RelayError('usage', `${existing}. To replace it without being asked, give --yes`)
  if (!(await prompt.confirm(`${existing}. Replace it?`)))
    throw new RelayError('cancelled', 'Nothing was changed')
}

/** Prints what was registered, what the profile lacks, and the next step. */
async function report(
  context: Context,
  flags: SetupFlags,
  { output, options, instance }: Attached,
  { client, app }: Registered,
): Promise<void> {
  const { provider, providerUrl } = options
  if (!flags.json) {
    output.say(`Stored the client ${client.id} of ${providerUrl} in profile ${options.profile}`)
    if (app) output.say(`Install the App on your repositories: ${app.installUrl}`)
  }
  const checks = await diagnose(context, flags, { nodeVersion: process.versions.node })
  if (flags.json) {
    const { id, slug } = app?.app ?? {}
    const described = app ? { id, slug, installUrl: app.installUrl } : null
    return output.object({ provider, providerUrl, clientId: client.id, app: described, checks })
  }
  printChecks(checks, output)
  output.say(
    instance
      ? `Restart relay serve (process ${instance.pid}), which does not know this client yet. Then run relay login`
      : 'Next: relay login',
  )
}
