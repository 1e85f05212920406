import { Hono } from 'hono'
import { RelayError } from '../../base/errors.js'
import type { HttpEnv } from '../../http/body.js'
import { REFUSED_TEXT } from '../../instance/running.js'
import type { Refused, RefusedCounts } from '../../webhook/refused.js'
import type { Refusals } from '../../webhook/refusals.js'
import { requireProof } from '../proof.js'

export interface RefusedParts {
  /** HMAC with the instance's key; undefined when this process is not the profile's instance. */
  readonly prove: (text: string) => string | undefined
  readonly refusals: Refusals
}

/** A refused request without headers and body, so that a list of them is a small answer. */
export interface RefusedSummary extends Pick<
  Refused,
  'id' | 'at' | 'via' | 'status' | 'kind' | 'event' | 'deliveryId' | 'size'
> {
  readonly reason: string
}

export interface RefusedAnswer {
  /** The newest last. */
  readonly refused: readonly RefusedSummary[]
  /** How many of each kind there were since the start, including those that are no longer in the list. */
  readonly counts: RefusedCounts
}

export interface RefusedEntry extends RefusedSummary, Pick<Refused, 'headers'> {
  /** The start of the body, base64. */
  readonly body: string
}

/**
 * GET /instance/refused and /instance/refused/:id: the refused requests, for the profile's other commands. 404, as for an
 * unknown path, without the proof | 404 for an id that is not in the list.
 */
export function refusedRoutes({ prove, refusals: { list } }: RefusedParts) {
  return new Hono<HttpEnv>()
    .get('/instance/refused', async (c) => {
      requireProof(c, prove(REFUSED_TEXT))
      const refused = await Promise.all(list.list().map(summaryOf))
      return c.json<RefusedAnswer>({ refused, counts: list.counts() }, 200)
    })
    .get('/instance/refused/:id', async (c) => {
      requireProof(c, prove(REFUSED_TEXT))
      const found = list.get(Number(c.req.param('id')))
      if (!found) throw new RelayError('not_found', 'Not found')
      const { headers, body } = found
      const entry = { ...(await summaryOf(found)), headers, body: Buffer.from(body).toString('base64') }
      return c.json<RefusedEntry>(entry, 200)
    })
}

async function summaryOf(refused: Refused): Promise<RefusedSummary> {
  const { id, at, via, status, kind, event, deliveryId, size } = refused
  return { id, at, via, status, kind, event, deliveryId, size, reason: await refused.reason() }
}
