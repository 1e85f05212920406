import { silentLog } from '../base/log.js'
import { listen } from '../http/listen.js'
import { createSandbox, SANDBOX_HOST } from './app.js'
import type { Faults } from './faults.js'
import type { SandboxOptions } from './options.js'
import { pingPayload } from './payloads.js'
import type { SandboxState } from './state.js'

/** A running sandbox. */
export interface Sandbox extends AsyncDisposable {
  /** Its web address; the API is at `/api/v3`, OAuth at `/login/oauth`. */
  readonly url: string
  /** What it holds, to be read. */
  readonly state: SandboxState
  /** Makes it misbehave. */
  readonly faults: Faults
  /** Sends the `ping` delivery of a new webhook and waits for what is under way; a failure is logged only. */
  ping(): Promise<void>
  /** Resolves when every webhook for what has happened was delivered, or has failed. */
  idle(): Promise<void>
  close(): Promise<void>
}

/**
 * Starts an emulated code host on the loopback interface, which speaks GitHub's protocol.
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
      webhooks.send('ping', (hookUrl) => pingPayload(view, hookUrl))
      await webhooks.idle()
    },
    idle: () => webhooks.idle(),
    [Symbol.asyncDispose]: close,
  }
}
