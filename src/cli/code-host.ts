import { RelayError } from '../base/errors.js'
import { SANDBOX_PROFILE } from '../base/command-line.js'
import type { ReadSettings } from '../base/settings.js'
import type { CodeHost } from '../codehost/host.js'
import { openHost } from '../codehost/hosts.js'
import { aboutProfile, startCommand } from './advice.js'
import type { Joined } from './settings/join.js'
import type { LoadedSettings } from './settings/read.js'

/** Opens the code host of the settings. It refuses calls if only the folder names it. @throws RelayError as {@link codeHostOf} */
export function openNamedHost(joined: HostSettings, timeLimit?: number): CodeHost {
  const { provider: name, providerUrl: url, hostRefusal: refusal } = codeHostOf(joined)
  return openHost({ name, url, refusal, ...(timeLimit !== undefined && { timeLimit }) })
}

type HostSettings = Pick<Joined, keyof LoadedSettings | 'hostRefusal'>

/** Returns name and address of the code host. @throws RelayError `settings` when its address is not known */
export function codeHostOf({
  hostRefusal,
  ...about
}: HostSettings): Pick<ReadSettings, 'provider' | 'providerUrl' | 'hostRefusal'> {
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
