import type { Context } from 'hono'
import type { Log } from '../../src/base/log.js'
import { readBody } from '../../src/http/body.js'
import type { HttpEnv } from '../../src/http/env.js'
import { hostCheck } from '../../src/http/host.js'
import { listen, type ListenOptions } from '../../src/http/listen.js'
import { createRouter } from '../../src/http/router.js'

/** The limit of `POST /body`: 1 MiB. */
export const LIMIT = 1_048_576

/** A log that records warnings and errors. */
export function recordingLog(): { log: Log; lines: string[] } {
  const lines: string[] = []
  const log: Log = {
    debug: () => {},
    info: () => {},
    warn: (message) => lines.push(`warn ${message}`),
    error: (message, cause) => lines.push(`error ${message}: ${String(cause)}`),
  }
  return { log, lines }
}

/** A listening application with one route of each kind: answers at once, fails, waits, reads a body. */
export async function startEdge(options: Partial<ListenOptions> & { hold?: () => Promise<void> } = {}) {
  const { log, lines } = recordingLog()
  const { hold = () => Promise.resolve(), ...listenOptions } = options
  const app = createRouter({ hostAllowed: hostCheck({ host: '127.0.0.1', allowed: [] }), log })
    .get('/ok', (c) => c.json({ ok: true }))
    .get('/bug', () => {
      throw new Error('a secret detail')
    })
    .get('/odd', () => {
      // oxlint-disable-next-line typescript/only-throw-error -- a dependency may throw a value that is not an Error
      throw 'text'
    })
    .get('/held', async (c) => {
      await hold()
      return c.json({ held: true })
    })
    .post('/body', async (c: Context<HttpEnv>) => {
      const body = await readBody(c, LIMIT)
      return c.json({ bytes: body.byteLength, first: body[0] ?? null, last: body.at(-1) ?? null })
    })
  const listener = await listen(app.fetch, { host: '127.0.0.1', port: 0, log, ...listenOptions })
  return { ...listener, app, lines, [Symbol.asyncDispose]: () => listener.close() }
}
