import { RelayError } from '../../base/errors.js'
import { isTimeout } from '../../base/wait.js'
import type { Database } from '../../store/open.js'
import type { Shell } from '../command.js'
import type { Profile } from '../profile.js'

// Common parts of the checks of `relay doctor`.

/** Result of a check. Its texts contain no secret. */
export interface CheckResult {
  /** `skip`: the check does not apply, or nothing is known. */
  readonly state: 'ok' | 'fail' | 'skip'
  readonly text: string
  /** Fix of a failure: a command, or a setting. */
  readonly fix?: string
}

/** The profile that is examined. */
export interface Examined {
  readonly shell: Shell
  /** Settings, with the OAuth client that relay setup stored if none is set. */
  readonly profile: Profile
  /** Undefined if the profile has no data yet, or it cannot be opened. */
  readonly data: Database | undefined
  /** Reason why the data cannot be opened. */
  readonly problem: { readonly text: string; readonly fix: string | undefined } | undefined
}

/**
 * A check. Resolves to a description of the good state. @throws {@link fail} or {@link skip}; RelayError, whose message
 * is that of a failure
 */
export type Check = (subject: Examined) => Promise<string>

/** Error with the result of a check. */
export class Finding extends Error {
  readonly result: CheckResult

  constructor(result: CheckResult) {
    super(result.text)
    this.result = result
  }
}

/** Makes the error of a check that found a problem. */
export const fail = (text: string, fix: string): Error => new Finding({ state: 'fail', text, fix })
/** Makes the error of a check that does not apply. */
export const skip = (text: string): Error => new Finding({ state: 'skip', text })

/** Runs a check and returns its result. */
export async function settle(check: () => Promise<string>): Promise<CheckResult> {
  try {
    return { state: 'ok', text: await check() }
  } catch (error) {
    if (error instanceof Finding) return error.result
    const known = isTimeout(error) ? `no answer within ${LIMIT_MS / 1000} s` : 'the check itself failed'
    // The message of a RelayError contains no secret.
    const text = error instanceof RelayError ? error.message : known
    return { state: 'fail', text }
  }
}

/** Time limit of a check. Milliseconds. */
export const LIMIT_MS = 5000

/** Fix of a clock that is wrong. */
export const SET_CLOCK =
  process.platform === 'linux' ? 'sudo timedatectl set-ntp true' : "set this machine's clock"
