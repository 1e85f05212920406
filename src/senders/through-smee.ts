import { provesBody } from './proof.js'
import { isInBody, type WebhookScheme } from './scheme.js'

/**
 * Effect of a smee server on a sender's bodies. `whole`: relay restores them. `objects`, `json`: it only passes on JSON
 * objects, but the sender also sends lists or forms. `none`: it refuses them, or nothing proves what it passes on.
 */
export interface ThroughSmee {
  readonly arrives: 'whole' | 'objects' | 'json' | 'none'
  /** Bodies that do not arrive and why, and open questions, as parts of a sentence. */
  readonly but: readonly string[]
}

/** The first item of a list that is the whole body. */
const IN_LIST = '$.0.'

/**
 * Returns which of a sender's requests a smee server passes on. The server takes only POST with `application/json` (else 415)
 * and an object as body (else 400), and it answers by itself.
 * @see github.com/probot/smee.io lib/server.js, commit 922d925 of 2025-12-02, and Fastify's default parsers
 */
export function throughSmee({
  proofs,
  content,
  event,
  id,
  events,
  handshakes = [],
}: Pick<WebhookScheme, 'proofs' | 'content' | 'event' | 'id' | 'events' | 'handshakes'>): ThroughSmee {
  if (proofs.some(({ jwt }) => jwt?.isBody))
    return { arrives: 'none', but: ['its bodies, which are tokens, are refused'] }
  const signed = proofs.filter(provesBody)
  // A proof that does not depend on the form of the secret applies to all secrets.
  const isOpen = proofs.some((proof) => !proof.secretForm && !provesBody(proof))
  if (signed.length === 0 || isOpen) return { arrives: 'none', but: ['nothing proves the whole body'] }
  const lists = event.filter((place) => place.startsWith(IN_LIST))
  if (lists.length > 0 && lists.length === event.length)
    return { arrives: 'none', but: ['its lists are refused'] }
  const other = content === 'any' ? 'all but JSON is refused' : 'its forms are refused'
  return {
    arrives: lists.length > 0 ? 'objects' : content === 'json' ? 'whole' : 'json',
    but: [
      ...(lists.length > 0 ? ['its lists are refused'] : []),
      ...(content === 'json' ? [] : [other]),
      ...(signed.length < proofs.length ? ['a plain token cannot be used'] : []),
      ...(handshakes.length > 0 ? ['what it asks an address gets no answer'] : []),
      ...(event.length > 0 && !events && !event.some(isInBody) ? ['the event is not proved'] : []),
      ...(signed.some(({ time }) => time) ? ['late ones are refused'] : []),
      ...(id.length > 0 && !id.some(isInBody) && !signed.some((proof) => proof.id)
        ? ['equal bodies count once']
        : []),
    ],
  }
}
