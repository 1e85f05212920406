import { Disposal } from '../../../base/disposal.js'
import { RelayError } from '../../../base/errors.js'
import type { Secret } from '../../../base/secret.js'
import { secretPrint } from '../../../instance/running.js'
import { Journal } from '../../../journal/journal.js'
import type { Database } from '../../../store/open.js'
import { mayHaveData, openDatabase } from '../../../store/open.js'
import type { Context } from '../../context.js'
import type { Output } from '../../output/output.js'
import { attach, type Attached } from '../../session/attach.js'
import { onlyInMemory } from '../../session/instance-settings.js'
import { startCommand } from '../../session/start-command.js'
import { profileFolder, storeOf } from '../../settings/complete.js'
import { requireSecret, signingSecret } from '../../settings/signing-secret.js'
import type { SendFlags } from './send-options.js'
import type { SendPlan } from './send-plan.js'

/** Where requests go, and the secret that signs them. */
export interface Destination extends AsyncDisposable {
  readonly output: Output
  /** The provider of made-up deliveries: that of the instance, else that of the settings. */
  readonly provider: string
  /** @throws RelayError `unavailable` without an address or an instance; `settings` without a secret to sign with. */
  address(): Address
  /** The profile's. @throws RelayError `no_match`, `settings` when it has none that can be read. */
  journal(): Journal
}

export interface Address {
  readonly url: string
  readonly secret: Secret
  /** Why the instance refuses the signatures of this secret, and how to fix it. Undefined if it is the instance's own. */
  readonly mismatch: string | undefined
}

/**
 * The address that `--to` names, or the running instance once it has proved itself.
 * @throws RelayError as {@link attach}; `storage`.
 */
export async function openDestination(
  context: Context,
  flags: SendFlags,
  { to }: Pick<SendPlan, 'to'>,
): Promise<Destination> {
  const attached = await attach(context, flags, { standalone: to !== undefined })
  const { output, options, instance } = attached
  await using closing = new Disposal()
  const database = await openProfile(attached, closing)
  const owner = closing.move()
  return {
    output,
    provider: options.provider,
    address() {
      const url = to ?? (instance ? `${instance.url}/webhook` : undefined)
      if (url === undefined) throw noInstance(attached)
      const secret = requireSecret(signingSecret(context, flags, attached), 'sign with')
      return { url, secret, mismatch: to === undefined ? mismatch(attached, flags, secret) : undefined }
    },
    journal() {
      if (database) return new Journal(database.sql)
      if (instance?.store === 'memory') throw onlyInMemory(instance, 'its journal')
      const { profile } = options
      throw new RelayError(
        'no_match',
        `Profile ${profile} has no journal yet. ${startCommand({ profile })} creates it`,
      )
    },
    [Symbol.asyncDispose]: () => owner[Symbol.asyncDispose](),
  }
}

/** Undefined when the profile has no data, or only relay serve has it in memory. A keychain holds only tokens. */
async function openProfile(
  { options, instance }: Attached,
  closing: Disposal,
): Promise<Database | undefined> {
  if (instance?.store === 'memory') return undefined
  const [folder, store] = [profileFolder(options), storeOf(options)]
  if (!mayHaveData(store, folder)) return undefined
  return closing.use(await openDatabase({ kind: store, folder, create: false }))
}

function noInstance({ options: { profile }, saved }: Attached): RelayError {
  const start = startCommand({ profile, sandbox: saved?.sandbox ?? false })
  return new RelayError(
    'unavailable',
    `No relay is running for profile ${profile}. Start it with ${start}, or name an address with --to`,
  )
}

function mismatch(
  { instance, origins }: Attached,
  { secretEnv }: SendFlags,
  secret: Secret,
): string | undefined {
  if (!instance || secretPrint(instance, secret) === instance.secretPrint) return undefined
  const place = secretEnv ?? origins.webhookSecret?.text ?? "the profile's file webhook-secret"
  return `This shell signs with the webhook secret of ${place}, and process ${instance.pid} has another. Set RELAY_WEBHOOK_SECRET to the secret that relay serve was started with`
}
