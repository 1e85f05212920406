import { silentLog } from '../base/log.js'
import { listen } from '../http/listen.js'
import { pingPayload } from '../providers/github/payloads.js'
import { createSandbox, SANDBOX_HOST } from './app.js'
import type { Faults } from './faults.js'
import type { SandboxOptions } from './options.js'
import { context } from './payloads.js'
import { DEMO, OWNER } from './seed.js'
import type { SandboxState } from './state.js'

export interface Sandbox extends AsyncDisposable {
  /** Web address. The API is at `/api/v3`, OAuth at `/login/oauth`. */
  readonly url: string
  readonly state: SandboxState
  readonly faults: Faults
  /** Sends the `ping` delivery of a new webhook and waits for pending deliveries. A failure is only logged. */
  ping(): Promise<void>
  /** Resolves when every webhook so far was delivered or has failed. */
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
  const { app, view, faults, webhooks } = createSandbox({ ...options, url: () => url })
  const listener = await listen(app.fetch, { host: SANDBOX_HOST, port, log, portFlag: '--sandbox-port' })
  url = listener.url

  async function close(): Promise<void> {
    faults.close()
    await Promise.all([listener.close(), webhooks.close()])
  }

  return {
    url,
    state: view.state,
    faults,
    close,
    async ping() {
      webhooks.send('ping', (hookUrl) => pingPayload(context(view, DEMO, OWNER), hookUrl))
      await webhooks.idle()
    },
    idle: () => webhooks.idle(),
    [Symbol.asyncDispose]: close,
  }
}
