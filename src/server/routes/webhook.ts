import type { IncomingMessage, ServerResponse } from 'node:http'
import { Hono } from 'hono'
import type { Log } from '../../base/log.js'
import { readBody, readIncoming } from '../../http/body.js'
import type { DirectHandler } from '../../http/edge.js'
import type { HttpEnv } from '../../http/env.js'
import { isPlain } from '../../http/plain.js'
import { sendError, sendJson } from '../../http/respond.js'
import type { Header } from '../../journal/delivery.js'
import type { Intake } from '../../webhook/intake.js'

export interface WebhookRoutes {
  readonly intake: Intake
  /** Largest accepted body, in bytes. */
  readonly maxBody: number
}

export interface WebhookListener extends WebhookRoutes {
  readonly hostAllowed: (host: string | undefined) => boolean
  readonly log: Log
}

const PATH = '/webhook'
const OK = { ok: true } as const

/**
 * POST /webhook: 200 `{"ok":true}` once the delivery is on disk; 413 `Request too large`, 401 `Invalid signature`,
 * 400 `Invalid event`, 503 `Delivery could not be stored`.
 */
export function webhookRoutes({ intake, maxBody }: WebhookRoutes) {
  return new Hono<HttpEnv>().post(PATH, async (c) => {
    const body = await readBody(c, maxBody)
    const headers = c.env?.incoming ? headerLines(c.env.incoming.rawHeaders) : [...c.req.raw.headers]
    await intake.receive({ headers, body })
    return c.json(OK, 200)
  })
}

/**
 * The same for what comes over the network as code hosts send it: a Host that is allowed, a length within the limit.
 * It answers Node's request as it is, since making a Request and a Response of it took a quarter of a delivery's time. All
 * other requests are left to the routes.
 */
export function webhookListener({ intake, maxBody, hostAllowed, log }: WebhookListener): DirectHandler {
  const plain = { hostAllowed, limit: maxBody }
  const answer = async (incoming: IncomingMessage, outgoing: ServerResponse, id: string): Promise<void> => {
    try {
      const body = await readIncoming(incoming, maxBody)
      if (!body) throw new Error('unreachable: its length is within the limit')
      await intake.receive({ headers: headerLines(incoming.rawHeaders), body })
      sendJson(outgoing, id, OK)
    } catch (error) {
      sendError(outgoing, id, error, log, `POST ${PATH}`)
    }
  }
  return (incoming, outgoing, id) => {
    const { method, url } = incoming
    if (method !== 'POST' || url !== PATH || !isPlain(incoming, plain)) return false
    void answer(incoming, outgoing, id)
    return true
  }
}

/** Node's flat list of names and values, which keeps spelling, order and repetition; fetch's `Headers` keep none. */
function headerLines(raw: readonly string[]): Header[] {
  const lines: Header[] = []
  for (let i = 0; i < raw.length; i += 2) lines.push([raw[i] ?? '', raw[i + 1] ?? ''])
  return lines
}
