import { existsSync } from 'node:fs'
import { Disposal } from '../../base/disposal.js'
import { RelayError } from '../../base/errors.js'
import type { Secret } from '../../base/secret.js'
import { findInstance } from '../../instance/instance.js'
import { type Journal } from '../../journal/journal.js'
import { openJournal } from '../../journal/open.js'
import type { Database } from '../../store/database.js'
import { openDatabase } from '../../store/open.js'
import type { Context } from '../context.js'
import { prepare } from '../globals.js'
import type { OptionValues } from '../options.js'
import type { Output } from '../output.js'
import { profileFolder } from '../settings.js'
import { signingSecret } from '../signing-secret.js'
import type { SendPlan } from './flags.js'
import type { SendFlags } from './send-options.js'

/** Where requests go, and what they are signed with. */
export interface Destination extends AsyncDisposable {
  readonly output: Output
  readonly url: string
  /** Whose deliveries are made up there: `--provider`, else the instance's, else that of the settings. */
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
    throw new RelayError('unavailable', 'No relay runs here: start relay serve, or name an address with --to')
  const flagged = flags.provider === undefined ? undefined : options.provider
  const secret = signingSecret(context, flags, options)
  if (!secret)
    throw new RelayError(
      'settings',
      'There is no webhook secret to sign with: set RELAY_WEBHOOK_SECRET, or name a variable with --secret-env',
    )
  const owner = closing.move()
  return {
    output,
    url,
    provider: flagged ?? instance?.provider ?? options.provider ?? 'github',
    secret,
    journal() {
      if (!database)
        throw new RelayError('no_match', 'The profile has no journal here: relay serve begins it')
      return openJournal(database)
    },
    [Symbol.asyncDispose]: () => owner[Symbol.asyncDispose](),
  }
}

/** Undefined when nothing was ever kept, or where it is known to relay serve alone. A keychain keeps tokens only. */
async function openProfile(options: OptionValues, closing: Disposal): Promise<Database | undefined> {
  const folder = profileFolder(options)
  if (options.store === 'memory' || !existsSync(folder)) return undefined
  return closing.use(await openDatabase({ kind: 'file', folder }))
}
