import { deadline } from '../../base/abort.js'
import { systemClock } from '../../base/time.js'
import { sendOnce } from '../../net/client.js'
import { checkAddresses } from '../../old/commands/doctor/addresses.js'
import { askCodeHost, checkClock, checkCodeHost } from '../../old/commands/doctor/code-host.js'
import type { CheckContext } from '../../old/commands/doctor/context.js'
import { checkClient } from '../../old/commands/doctor/oauth-client.js'
import { checkToken } from '../../old/commands/doctor/sign-in.js'
import { DEFAULTS } from '../../base/settings.js'
import type { Database } from '../../store/open.js'
import type { Shell } from '../command.js'
import { type Attached, publicAddress } from '../profile.js'

// What the checks of `relay doctor` have in common, and those about the code host.

/** What a check found. Its texts contain no secret. */
export interface CheckResult {
  /** `skip`: the check does not apply, or nothing is known. */
  readonly state: 'ok' | 'fail' | 'skip'
  readonly text: string
  /** How to fix a failure: a command, or what to set. */
  readonly fix?: string
}

/** The profile that is checked. */
export interface Subject {
  readonly shell: Shell
  /** With the OAuth client that relay setup stored, where none is set. */
  readonly attached: Attached
  /** Undefined when the profile has no data yet, or it cannot be opened. */
  readonly data: Database | undefined
  /** Why the data cannot be opened. */
  readonly problem: string | undefined
}

export type Check = (subject: Subject) => Promise<CheckResult>

export const ok = (text: string): CheckResult => ({ state: 'ok', text })
export const fail = (text: string, fix: string): CheckResult => ({ state: 'fail', text, fix })
export const skip = (text: string): CheckResult => ({ state: 'skip', text })

/** The time limit of a check. Milliseconds. */
export const LIMIT_MS = 5000
/** A command line of relay for the profile. */
export function commandFor({ profile }: Pick<Attached, 'profile'>, command: string): string {
  return profile === DEFAULTS.profile ? `relay ${command}` : `relay ${command} --profile ${profile}`
}

/** The command that sets this machine's clock. */
export function setClockCommand(): string {
  const commands: { readonly [name in NodeJS.Platform]?: string } = {
    linux: 'sudo timedatectl set-ntp true',
    darwin: 'sudo sntp -sS time.apple.com',
    win32: 'w32tm /resync',
  }
  return commands[process.platform] ?? "set this machine's clock"
}

/** Whether the code host answers, is of the configured kind, agrees on the time, knows the client, and can return browsers. */
export async function checkHost(subject: Subject): Promise<CheckResult> {
  const context = contextOf(subject)
  const { provider, providerUrl } = context.options
  const signal = deadline(LIMIT_MS, subject.shell.signal)
  const answer =
    providerUrl === undefined
      ? undefined
      : askCodeHost(provider, providerUrl, { sendOnce, clock: systemClock, signal })
  answer?.catch(() => {})
  const results = [
    await checkCodeHost(context, answer),
    await checkClock(answer),
    await checkClient(context, askingOf(subject)),
    checkAddresses(context),
  ]
  return joined(results)
}

/** Whether the user has an unexpired token of this code host that works. */
export async function checkSignIn(subject: Subject): Promise<CheckResult> {
  if (subject.problem !== undefined) return skip('the database cannot be opened')
  return checkToken(contextOf(subject), { now: systemClock(), ...askingOf(subject) })
}

/** The first failure, or what is fine, or the first reason for nothing to check. */
function joined(results: readonly CheckResult[]): CheckResult {
  const failed = results.find(({ state }) => state === 'fail')
  const fine = results.filter(({ state }) => state === 'ok').map(({ text }) => text)
  if (failed) return failed
  return fine.length > 0 ? { state: 'ok', text: fine.join('; ') } : (results[0] ?? skip('nothing to check'))
}

function contextOf({ attached, data }: Subject): CheckContext {
  const { values: options, folder, instance } = attached
  const publicUrl = publicAddress(attached)
  const origins: CheckContext['origins'] = JSON.parse(JSON.stringify(attached.origins))
  return { options, folder, publicUrl, instance, origins, store: data?.store, secrets: data?.secrets }
}

function askingOf({ shell: { signal } }: Subject) {
  return { sendOnce, timeLimit: LIMIT_MS, signal }
}
