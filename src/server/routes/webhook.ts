import { Hono } from 'hono'

import { readBody } from '../../http/body.js'
import type { HttpEnv } from '../../http/env.js'
import { jsonAnswer } from '../../http/respond.js'
import type { Header } from '../../journal/delivery.js'
import type { Intake } from '../../webhook/intake.js'

export interface WebhookRoutes {
  readonly intake: Intake
  /** Largest accepted body, in bytes. */
  readonly maxBody: number
}

/**
 * POST /webhook: 200 `{"ok":true}` once the delivery is on disk; 413 `Request too large`, 401 `Invalid signature`,
 * 400 `Invalid event`, 503 `Delivery could not be stored`.
 */
export function webhookRoutes({ intake, maxBody }: WebhookRoutes) {
  return new Hono<HttpEnv>().post('/webhook', async (c) => {
    const body = await readBody(c, maxBody)
    const headers = headerLines(c.env?.incoming?.rawHeaders) ?? [...c.req.raw.headers]
    await intake.receive({ headers, body })
    return jsonAnswer(c, '{"ok":true}')
  })
}

/** Node's flat list of names and values, which keeps spelling, order and repetition; fetch's `Headers` keep none. */
function headerLines(raw: readonly string[] | undefined): Header[] | undefined {
  if (!raw) return undefined
  const lines: Header[] = []
  for (let i = 0; i < raw.length; i += 2) lines.push([raw[i] ?? '', raw[i + 1] ?? ''])
  return lines
}
