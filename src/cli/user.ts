import { userInfo } from 'node:os'
import { RelayError } from '../base/errors.js'
import { parseUserId } from '../tokens/user-id.js'
import type { OptionValues } from './options.js'

/**
 * The user a command acts for: the one the options name, else the name on this machine.
 * @throws RelayError `usage` when the machine gives no name, or one that cannot be a user's.
 */
export function readUser({ user }: OptionValues): string {
  if (user !== undefined) return user
  try {
    return parseUserId(userInfo().username)
  } catch (cause) {
    // A container's user may have a number only; a Windows user, a name with spaces.
    throw new RelayError(
      'usage',
      'Your name on this machine cannot be used: give --user, or set RELAY_USER',
      {
        cause,
      },
    )
  }
}
