import type { RevokeOptions } from '../../../auth/renew.js'
import { RelayError } from '../../../base/errors.js'
import { openHost } from '../../../codehost/hosts.js'
import type { Database } from '../../../store/open.js'
import { Tokens } from '../../../tokens/tokens.js'
import type { Attached } from '../../session/attach.js'
import { type RevokeParts, revokeUser } from '../../session/revoke.js'
import { completeSettings } from '../../settings/complete.js'
import { unusedWebhookSecret } from '../../settings/webhook-secret.js'

/** The users with a token, or with what renews one. @throws RelayError `storage` */
export async function usersOf({ store }: Pick<Database, 'store'>): Promise<readonly string[]> {
  const keys = [...(await store.list('token:')), ...(await store.list('refresh:'))]
  return [...new Set(keys.map((key) => key.slice(key.indexOf(':') + 1)))].toSorted()
}

/**
 * Revokes the tokens of the users of a profile that no instance serves.
 * @throws RelayError as {@link revokeUser}, at the first that fails.
 */
export async function revokeAll(
  { options, output: { log } }: Attached,
  { store, secrets }: Pick<Database, 'store' | 'secrets'>,
  users: readonly string[],
  revocation: RevokeOptions,
): Promise<void> {
  if (users.length === 0) return
  const settings = completeSettings(options, unusedWebhookSecret)
  const host = openHost({ name: settings.provider, url: settings.providerUrl })
  const tokens = new Tokens(secrets)
  const { oauthClient: client, tokenTtl } = settings
  const parts: RevokeParts = { host, client, store, tokens, tokenTtl, log, instance: undefined }
  for (const user of users) {
    try {
      await revokeUser(parts, user, revocation)
    } catch (error) {
      if (!(error instanceof RelayError)) throw error
      const next = 'The profile stays. Run relay reset again to remove the rest'
      throw new RelayError(error.kind, `${error.message}. ${next}`, { cause: error })
    }
  }
}
