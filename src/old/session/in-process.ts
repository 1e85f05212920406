import type { Settings } from '../../base/settings.js'
import type { SendRequest } from '../../net/loopback.js'
import type { Relay, RelayOptions } from '../../relay.js'

/** The address of the application in this process, which its Host check accepts. */
export const IN_PROCESS = 'http://localhost'

/**
 * Sends requests to the whole application in this process, without a port or an instance. The first request builds it.
 * When `signal` aborts, pending calls to the code host are cancelled.
 */
export function sendInProcess(
  settings: Settings,
  { signal, ...options }: RelayOptions & { readonly signal: AbortSignal },
): SendRequest {
  let relay: Promise<Relay> | undefined
  return async (url, request, { signal: until = null } = {}) => {
    const { app } = await (relay ??= open(settings, options, signal))
    const response = await app.fetch(
      new Request(url, { ...request, body: request.body ?? null, signal: until }),
    )
    return {
      status: response.status,
      header: (name) => response.headers.get(name) ?? undefined,
      text: await response.text(),
    }
  }
}

async function open(settings: Settings, options: RelayOptions, signal: AbortSignal): Promise<Relay> {
  const [{ createRelay }, { sendOnce }] = await Promise.all([
    import('../../relay.js'),
    import('../../net/client.js'),
  ])
  return createRelay(settings, {
    ...options,
    sendOnce: (url, request) =>
      sendOnce(url, { ...request, signal: AbortSignal.any([request.signal ?? signal, signal]) }),
  })
}
