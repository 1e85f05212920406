import { isolateCallbacks } from '../base/callbacks.js'
import type { Settings } from '../base/settings.js'
import type { SandboxSettings, ServeOptions, Serving } from './serve.js'
import { listenerOf, servingOf } from './serving.js'
import { start } from './start.js'

/**
 * Starts a relay: listens, takes the profile, opens its data, forwards.
 * @throws RelayError `unavailable` if the port is in use or the profile is being served, `storage` if its data cannot
 * be opened, `settings` for a provider address that is neither https nor loopback, or if the routes of another relay of
 * the profile differ
 */
export async function serve(given: Settings | SandboxSettings, options: ServeOptions = {}): Promise<Serving> {
  const { log, clock, seams, env, ...callbacks } = isolateCallbacks(options)
  const onEvent = listenerOf(callbacks, log)
  const started = await start(given, { log, clock, seams, env, onEvent })
  return servingOf(started)
}
