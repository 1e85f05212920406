import { RelayError, toRelayError } from '../base/errors.js'
import type { Reloaded } from '../events/status.js'
import { onlyInMemory } from './advice.js'
import type { Shell } from './command.js'
import { callInstance } from './instance-client.js'
import type { Profile } from './profile.js'

// Changes of the sources and routes that the profile stores.

/** @throws RelayError `settings` for data in memory, which ends with this command, or which only the instance has */
export function refuseMemory({ values, instance }: Profile, what: 'sources' | 'routes'): void {
  if (values.store !== 'memory') return
  if (instance) throw onlyInMemory(instance, `its ${what}`)
  const lost = what === 'sources' ? 'secret' : 'route'
  throw new RelayError('settings', `--store memory would lose the ${lost} as soon as this command ends`)
}

/** State of the running instance after a change of what the profile stores. */
export interface Applied {
  /** Undefined if no instance runs, or it does not use the change. */
  readonly reloaded: Reloaded | undefined
  /** Advice if an instance runs and does not use the change. */
  readonly problem: string | undefined
}

/** Has the running instance use a change of the profile's sources or routes at once. @throws RelayError `cancelled` */
export async function applyStored(
  { signal }: Shell,
  profile: Profile,
  what: 'sources' | 'routes',
): Promise<Applied> {
  const { instance } = profile
  if (!instance) return { reloaded: undefined, problem: undefined }
  try {
    return { reloaded: await callInstance(instance, 'reload', {}, { signal }), problem: undefined }
  } catch (thrown) {
    const { kind, message } = toRelayError(thrown)
    if (kind === 'cancelled') throw thrown
    return {
      reloaded: undefined,
      problem: `process ${instance.pid} keeps the ${what} that it had: ${message}`,
    }
  }
}
