import type { Ask } from '../base/ask.js'
import type { Settings } from '../base/settings.js'
import type { Relay, RelayOptions } from '../relay.js'

/** What it is called by: a name its Host check takes. */
export const IN_PROCESS = 'http://localhost'

/**
 * Has the whole service answer in this process: no port, no instance; the first call puts it together.
 * When `signal` aborts, the calls to the code host that are under way are given up.
 */
export function askInProcess(
  settings: Settings,
  { signal, ...options }: RelayOptions & { readonly signal: AbortSignal },
): Ask {
  let relay: Promise<Relay> | undefined
  return async (url, question, { signal: until = null } = {}) => {
    const { app } = await (relay ??= open(settings, options, signal))
    const answer = await app.fetch(
      new Request(url, { ...question, body: question.body ?? null, signal: until }),
    )
    return {
      status: answer.status,
      header: (name) => answer.headers.get(name) ?? undefined,
      text: await answer.text(),
    }
  }
}

async function open(settings: Settings, options: RelayOptions, signal: AbortSignal): Promise<Relay> {
  const [{ createRelay }, { outboundCall }] = await Promise.all([
    import('../relay.js'),
    import('../providers/fetch.js'),
  ])
  const fetch: typeof outboundCall = (address, request) =>
    outboundCall(address, { ...request, signal: AbortSignal.any([request.signal, signal]) })
  return createRelay(settings, { ...options, fetch })
}
