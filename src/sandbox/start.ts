import { silentLog } from '../base/log.js'
import { listen } from '../http/listen.js'
import { createSandbox, SANDBOX_HOST } from './app.js'
import type { Faults } from './faults.js'
import type { SandboxOptions } from './options.js'
import { repositoryPing } from './payloads.js'
import { DEMO, OWNER } from './seed.js'
import type { SandboxState } from './state.js'

export interface Sandbox extends AsyncDisposable {
  /** Web address. The API is at `/api/v3`, OAuth at `/login/oauth`. */
  readonly url: string
  readonly state: SandboxState
  readonly faults: Faults
  /** Sends a `ping` of its own hook and waits for pending deliveries. A failure is only logged. */
  ping(): Promise<void>
  /** Resolves when every check so far has completed, and every webhook was delivered or has failed. */
  idle(): Promise<void>
  close(): Promise<void>
}

/**
 * Starts an emulated code host with GitHub's protocol on the loopback interface.
 * @throws RelayError `unavailable` when the port is in use.
 */
export async function startSandbox(options: SandboxOptions): Promise<Sandbox> {
  const { port = 0, log = silentLog } = options
  let url = ''
  const { app, view, faults, webhooks, ci, ownHook } = createSandbox({ ...options, url: () => url })
  const listener = await listen(app.fetch, { host: SANDBOX_HOST, port, log, portFlag: '--sandbox-port' })
  url = listener.url

  async function close(): Promise<void> {
    faults.close()
    await Promise.all([listener.close(), ci.close(), webhooks.close()])
  }

  return {
    url,
    state: view.state,
    faults,
    close,
    async ping() {
      if (ownHook) webhooks.send(ownHook, 'ping', repositoryPing(view, DEMO, ownHook, OWNER))
      await webhooks.idle()
    },
    async idle() {
      await ci.idle()
      await webhooks.idle()
    },
    [Symbol.asyncDispose]: close,
  }
}
