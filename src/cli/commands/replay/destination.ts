import { Disposal } from '../../../base/disposal.js'
import { RelayError } from '../../../base/errors.js'
import type { Secret } from '../../../base/secret.js'
import { findInstance } from '../../../instance/instance.js'
import type { Journal } from '../../../journal/journal.js'
import { openJournal } from '../../../journal/open.js'
import type { Database } from '../../../store/database.js'
import { databaseExists, openDatabase } from '../../../store/open.js'
import type { Context } from '../../context.js'
import type { Output } from '../../output/output.js'
import { profileFolder } from '../../settings/complete.js'
import type { OptionValues } from '../../settings/options.js'
import { prepare } from '../../settings/prepare.js'
import { requireSecret, signingSecret } from '../../settings/signing-secret.js'
import type { SendFlags } from './send-options.js'
import type { SendPlan } from './send-plan.js'

/** Where requests go, and the secret that signs them. */
export interface Destination extends AsyncDisposable {
  readonly output: Output
  readonly url: string
  /** The provider of made-up deliveries: that of `--provider`, else the instance's, else that of the settings. */
  readonly provider: string
  readonly secret: Secret
  /** The profile's. @throws RelayError `no_match`, `settings` when it has none that can be read. */
  journal(): Journal
}

/**
 * The address that `--to` names, or the running instance once it has proved itself.
 * @throws RelayError `unavailable` when there is neither; `settings` without a secret to sign with; `storage`.
 */
export async function openDestination(
  context: Context,
  flags: SendFlags,
  { to }: Pick<SendPlan, 'to'>,
): Promise<Destination> {
  const { output, options } = prepare(context, flags)
  await using closing = new Disposal()
  const database = await openProfile(options, closing)
  const instance = to === undefined && database ? await findInstance(database.store, context) : undefined
  const url = to ?? (instance ? `${instance.url}/webhook` : undefined)
  if (url === undefined)
    throw new RelayError(
      'unavailable',
      'No relay is running for this profile. Start relay serve, or name an address with --to',
    )
  const secret = requireSecret(signingSecret(context, flags, options), 'sign with')
  const owner = closing.move()
  return {
    output,
    url,
    provider: flags.provider === undefined ? (instance?.provider ?? options.provider) : options.provider,
    secret,
    journal() {
      if (database) return openJournal(database.sql, { log: output.log })
      throw new RelayError(
        'no_match',
        `Profile ${options.profile} has no journal yet. relay serve creates it`,
      )
    },
    [Symbol.asyncDispose]: () => owner[Symbol.asyncDispose](),
  }
}

/** Undefined when the profile has no data, or only relay serve has it in memory. A keychain holds only tokens. */
async function openProfile(options: OptionValues, closing: Disposal): Promise<Database | undefined> {
  const folder = profileFolder(options)
  if (options.store === 'memory' || !databaseExists(folder)) return undefined
  return closing.use(await openDatabase({ kind: 'file', folder }))
}
