import { RelayError } from '../../../base/errors.js'
import { Secret } from '../../../base/secret.js'
import { registerHook } from '../../../codehost/hooks.js'
import { secretPrint } from '../../../instance/running.js'
import type { Context } from '../../context.js'
import { hookStateText } from '../../output/hook-text.js'
import { formatRepo } from '../../session/repo.js'
import type { Session } from '../../session/session.js'
import { readWebhookSecret } from '../../settings/webhook-secret.js'
import { type AddressFlags, openHookSession, payloadAddress, requireAddress } from './hook-session.js'
import { hookObject } from './object.js'

type AddFlags = AddressFlags & { readonly events?: string }

/** Runs `relay hook add`. */
export async function runAdd(context: Context, flags: AddFlags, text: string): Promise<void> {
  const events = readEvents(flags)
  await using hooks = await openHookSession(context, flags, text)
  const { session, place, repo } = hooks
  const url = requireAddress(await payloadAddress(session, flags), session)
  const settings = { url, secret: webhookSecret(session), events }
  const chosen = flags.url !== undefined
  const added = await registerHook(place, { settings, permanent: true, chosen, repair: true })
  const { hook, created, repaired, found } = added
  if (flags.json) session.output.object({ ...hookObject(hook, true), created, repaired, found })
  else session.output.result(hookStateText(formatRepo(repo), added))
}

function readEvents({ events }: AddFlags): readonly string[] | undefined {
  if (events === undefined) return undefined
  const names = events.split(',').map((name) => name.trim())
  if (names.every((name) => /^[a-z_]{1,64}$/.test(name))) return [...new Set(names)]
  throw new RelayError('usage', '--events: must be names of events, separated by commas: push,pull_request')
}

/**
 * The secret that the running instance verifies with, or that the next one will.
 * @throws RelayError `settings` when this shell has another one than the instance.
 */
function webhookSecret({ options, instance, settings }: Session): Secret {
  const { webhookSecret: given, store } = options
  const secret = given === undefined ? readWebhookSecret(settings.folder, store) : new Secret(given)
  if (!instance || secretPrint(instance, secret) === instance.secretPrint) return secret
  throw new RelayError(
    'settings',
    `Process ${instance.pid} serves profile ${instance.profile} with another webhook secret than this shell has. Set the same RELAY_WEBHOOK_SECRET here, or restart the instance`,
  )
}
