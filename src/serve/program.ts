import { isolateCallbacks } from '../base/callbacks.js'
import { RelayError } from '../base/errors.js'
import { checkMembers } from '../base/checks.js'
import { StopGate } from '../base/stop-gate.js'
import { inOwnWords } from '../base/own-words.js'
import type { Settings } from '../base/settings.js'
import { onAbort } from '../base/wait.js'
import { OPTION_WORDS, STOPPED } from '../relay.js'
import { checkSettings } from '../senders/check-settings.js'
import { Mount } from './mount.js'
import { SERVE_OPTIONS } from './options.js'
import type { Mounted, SandboxSettings, ServeOptions, Serving } from './serve.js'
import { listenerOf, servingOf, viewOf } from './serving.js'
import { start, type Started } from './start.js'

/**
 * Starts a relay: listens, takes its folder, opens its data, forwards.
 * @throws RelayError `unavailable` if the port is in use or another relay has the folder, `storage` if its data cannot
 * be opened, `settings` for an invalid setting, or if the routes of another relay of the profile differ, `usage` for an
 * invalid option; the signal's reason
 */
export async function serve(given: Settings | SandboxSettings, options: ServeOptions = {}): Promise<Serving> {
  checkSettings(given)
  checkMembers(options, SERVE_OPTIONS, OPTION_WORDS)
  const { started, gate } = await embed(given, options)
  return servingOf(started, gate)
}

/**
 * Starts a relay that does not listen, in a program with an HTTP server of its own: takes its folder, opens its data,
 * forwards. The program passes the requests of senders to `fetch` or `handler`.
 * @throws RelayError as {@link serve}
 */
export async function mount(settings: Settings, options: ServeOptions = {}): Promise<Mounted> {
  checkSettings(settings)
  checkMembers(options, SERVE_OPTIONS, OPTION_WORDS)
  if ('sandbox' in settings && settings.sandbox)
    throw new RelayError('settings', 'A mounted relay has no sandbox: use serve')
  const mounted = new Mount(settings, options.log)
  const { started, gate } = await embed(settings, options, mounted)
  return {
    ...viewOf(started, gate),
    fetch: (request, receiving) => mounted.receive(request, receiving),
    handler: (receiving) => mounted.handler(receiving),
  }
}

async function embed(
  given: Settings | SandboxSettings,
  options: ServeOptions,
  mounted?: Mount,
): Promise<{ readonly started: Started; readonly gate: StopGate }> {
  const { log, clock, seams, env, signal, ...callbacks } = isolateCallbacks(options)
  signal?.throwIfAborted()
  const onEvent = listenerOf(callbacks, log)
  const own = { isEmbedded: true, mount: mounted }
  const started = await inOwnWords(() => start(given, { log, clock, seams, env, onEvent, ...own }))
  const gate = new StopGate(STOPPED, async () => started[Symbol.asyncDispose]())
  if (signal)
    onAbort(
      signal,
      () => void gate.stop().catch((error: unknown) => log?.error('relay could not stop', error)),
    )
  return { started, gate }
}
