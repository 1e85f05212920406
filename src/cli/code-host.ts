import { RelayError } from '../base/errors.js'
import { SANDBOX_PROFILE } from '../base/command-line.js'
import type { Limits } from '../base/seams.js'
import type { CodeHostSettings } from '../base/settings.js'
import type { CodeHost } from '../codehost/host.js'
import { aboutProfile, startCommand } from './advice.js'
import type { Joined } from './settings/join.js'
import type { LoadedSettings } from './settings/read.js'

/** Opens the code host of the settings. It refuses calls if only the folder names it. @throws RelayError as {@link codeHostOf} */
export async function openNamedHost(joined: HostSettings, limits?: Partial<Limits>): Promise<CodeHost> {
  const { provider: name, providerUrl: url, hostRefusal: refusal } = codeHostOf(joined)
  // Loaded late: the code hosts, with zod, are most of what a command that acts for a user needs.
  const { openHost } = await import('../codehost/hosts.js')
  return openHost({ name, url, refusal, limits })
}

type HostSettings = Pick<Joined, keyof LoadedSettings | 'hostRefusal'>

/** Returns name and address of the code host. @throws RelayError `settings` when its address is not known */
export function codeHostOf({ hostRefusal, ...about }: HostSettings): CodeHostSettings {
  const { values, origins } = about
  const { provider, providerUrl } = values
  if (providerUrl !== undefined) return { provider, providerUrl, hostRefusal }
  // Without a named profile, a command follows any sandbox that is the only running instance.
  const sandbox = aboutProfile(about, origins.profile ? values.profile : SANDBOX_PROFILE)
  throw new RelayError(
    'settings',
    provider === 'sandbox'
      ? `The sandbox is not running. Start it with ${startCommand({ ...sandbox, saved: { sandbox: true } })}, or set RELAY_PROVIDER_URL to its address`
      : `RELAY_PROVIDER_URL is not set. Set it to the address of your ${provider}, for example https://git.example.com`,
  )
}
