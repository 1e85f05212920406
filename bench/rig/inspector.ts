import { findRunning } from '../../src/instance/registry.js'
import { createInspectClient } from '../../src/client/inspect.js'
import { createLoopbackClient } from '../../src/net/loopback-client.js'

/** How often a page reads the list and the timeline again. Milliseconds. */
const REFRESH_MS = 1000

/** A browser's side of an inspector that is open. */
export interface OpenInspector {
  /** Reads an address below /inspect/api/, and returns how long it took until the whole answer was there, in milliseconds. */
  read(path: string): Promise<number>
  /**
   * Does what a page does while more arrives than it is sent: reads the stream of changes, and every second the list and the
   * timeline, until it is disposed of.
   */
  follow(): Promise<Disposable>
}

/** Opens the inspector of the instance that runs on this data folder. */
export async function openInspector(home: string): Promise<OpenInspector> {
  const [instance] = await findRunning(home, {})
  if (!instance) throw new Error('no relay runs there')
  using loopback = createLoopbackClient()
  const code = await createInspectClient(instance, { send: loopback.send }).issueCode()
  const opened = await fetch(`${instance.url}/inspect/open`, {
    method: 'POST',
    body: new URLSearchParams({ code }),
  })
  const [cookie = ''] = (opened.headers.get('set-cookie') ?? '').split(';')
  const get = async (path: string, signal?: AbortSignal): Promise<Response> => {
    const init = { headers: { Cookie: cookie }, ...(signal && { signal }) }
    const response = await fetch(`${instance.url}/inspect/api/${path}`, init)
    if (response.status !== 200) throw new Error(`${path} was answered ${response.status}`)
    return response
  }
  return {
    async read(path) {
      const start = performance.now()
      await (await get(path)).text()
      return performance.now() - start
    },
    async follow() {
      const end = new AbortController()
      const { body } = await get('live', end.signal)
      void body?.pipeTo(new WritableStream(), { signal: end.signal }).catch(() => {})
      const readAgain = async (): Promise<void> => {
        for (const path of ['deliveries?limit=100', 'timeline']) await (await get(path, end.signal)).text()
      }
      const onFailure = (error: unknown): void => {
        if (!end.signal.aborted) throw error
      }
      const timer = setInterval(() => void readAgain().catch(onFailure), REFRESH_MS)
      return {
        [Symbol.dispose]() {
          clearInterval(timer)
          end.abort()
        },
      }
    },
  }
}
