import { Hono } from 'hono'
import { RelayError } from '../../base/errors.js'
import { readBody, type HttpEnv } from '../../http/body.js'
import type { FetchHandler } from '../../http/listen.js'
import { INSPECT_TEXT } from '../../instance/running.js'
import { requireProof } from '../proof.js'

/** The inspector, as the service mounts it. */
export interface MountedInspector {
  readonly fetch: FetchHandler
  /** A one-time code, with which a browser opens it. */
  issueCode(): string
  /** Whether the code still waits to be used. */
  isPending(code: string): boolean
}

export interface InspectRouteParts {
  /** HMAC with the instance's key; undefined when this process is not the profile's instance. */
  readonly prove: (text: string) => string | undefined
  /** Loads the inspector when it is first asked for. Undefined: it is off. */
  readonly inspector?: (() => Promise<MountedInspector>) | undefined
}

export interface InspectCode {
  readonly code: string
}

export interface InspectPending {
  readonly pending: boolean
}

/** A code, as it is written. */
const MAX_CODE = 64

/** The path of the inspector's first page. */
export const INSPECT_PATH = '/inspect/'

/**
 * `/inspect/…`: the inspector, which answers for itself. POST /instance/inspect: 200 {@link InspectCode} for the profile's other
 * commands; 404, as for an unknown path, without the proof; 503 when the inspector is off. POST /instance/inspect/pending: 200
 * {@link InspectPending} for the code in its body.
 */
export function inspectRoutes({ prove, inspector }: InspectRouteParts) {
  const app = new Hono<HttpEnv>().post('/instance/inspect', async (c) => {
    requireProof(c, prove(INSPECT_TEXT))
    if (!inspector)
      throw new RelayError('not_configured', 'The inspector is off: relay runs with --no-inspect')
    const opened = await inspector()
    return c.json<InspectCode>({ code: opened.issueCode() }, 200)
  })
  if (!inspector) return app
  app.post('/instance/inspect/pending', async (c) => {
    requireProof(c, prove(INSPECT_TEXT))
    const code = Buffer.from(await readBody(c, MAX_CODE)).toString()
    return c.json<InspectPending>({ pending: (await inspector()).isPending(code) }, 200)
  })
  return app
    .get('/inspect', (c) => c.redirect(INSPECT_PATH))
    .all(`${INSPECT_PATH}*`, async (c) => (await inspector()).fetch(c.req.raw, c.env))
}
