import type { Log } from '../base/log.js'
import type { Settings } from '../base/settings.js'
import type { Relay } from '../relay.js'

/** The whole service, answering in this process: no port, no instance, put together by the first call. */
export interface InProcess extends AsyncDisposable {
  readonly fetch: typeof fetch
}

/** When `signal` aborts, the calls to the code host that are under way are given up. */
export function inProcessFetch(settings: Settings, parts: { log: Log; signal: AbortSignal }): InProcess {
  let relay: Promise<Relay> | undefined
  return {
    async fetch(input, init) {
      const { app } = await (relay ??= open(settings, parts))
      return app.fetch(new Request(input, init))
    },
    async [Symbol.asyncDispose]() {
      await (await relay)?.[Symbol.asyncDispose]()
    },
  }
}

async function open(settings: Settings, { log, signal }: { log: Log; signal: AbortSignal }): Promise<Relay> {
  const [{ createRelay }, { outboundFetch }] = await Promise.all([
    import('../relay.js'),
    import('../providers/fetch.js'),
  ])
  const fetch: typeof outboundFetch = (input, init) =>
    outboundFetch(input, { ...init, signal: init?.signal ? AbortSignal.any([init.signal, signal]) : signal })
  return createRelay(settings, { log, fetch })
}
