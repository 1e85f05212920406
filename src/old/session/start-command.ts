import { DEFAULTS } from '../../base/settings.js'

/** The profile of `serve --sandbox` where none is named. */
export const SANDBOX_PROFILE = 'sandbox'

/** The command line that starts a profile's instance. */
export function startCommand({
  profile,
  sandbox = false,
}: {
  readonly profile: string
  readonly sandbox?: boolean
}): string {
  const usual = sandbox ? SANDBOX_PROFILE : DEFAULTS.profile
  const name = profile === usual ? '' : ` --profile ${profile}`
  return `relay serve${sandbox ? ' --sandbox' : ''}${name}`
}
