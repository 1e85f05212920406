import { userInfo } from 'node:os'
import { RelayError } from '../../base/errors.js'
import { parseUserId } from '../../base/user-id.js'
import type { OptionValues } from '../settings/options.js'

/**
 * The user that a command acts for: that of the options, else the name on this machine.
 * @throws RelayError `usage` when the machine has no name, or one that is not a valid user id.
 */
export function readUser({ user }: Pick<OptionValues, 'user'>): string {
  if (user !== undefined) return user
  try {
    return parseUserId(userInfo().username)
  } catch (cause) {
    // A container's user can have only a number, and a Windows user a name with spaces.
    throw new RelayError(
      'usage',
      'Your name on this machine is not a valid user id. Give --user, or set RELAY_USER',
      {
        cause,
      },
    )
  }
}
