import { RelayError } from '../base/errors.js'
import type { Clock } from '../base/time.js'
import { type Header, indexHeaders } from '../http/headers.js'
import type { Journal } from '../journal/journal.js'
import { CLAIMS_HEADER, type Delivery, EDITED_HEADER, isRelayHeader } from '../journal/types.js'
import type { Plan, Receipt } from '../journal/types.js'
import { bodyDigest, isOwnId, ownId } from '../senders/identity.js'
import type { WebhookRequest } from '../senders/request.js'
import type { Sender } from '../senders/sender.js'
import { type Source, storedEvent } from '../senders/source.js'
import { isSecretHeader } from '../senders/senders.js'

/** Origin of a request. */
export interface RequestOrigin {
  /** Its source when the request began: a change of the settings applies from the next request on. */
  readonly source: Source
  /**
   * Method by which the bytes of a tunnel's message were restored. Anybody may have written its headers, so its payload
   * must fit its event.
   */
  readonly restored?: string | undefined
  /**
   * Arrival of a request that had to wait for storage, in milliseconds since 1970-01-01 UTC. Its signed time is
   * compared with this.
   */
  readonly at?: number | undefined
  /**
   * Set if it had waited at a hub: the hub's id of it, which repeats of the hub have too, and when the hub received it.
   * That is when the delivery counts as received; it waits for its targets from now.
   */
  readonly waited?: { readonly id: string; readonly at: number } | undefined
  /**
   * Set if a user made and sent it: the number of the original entry if it is an edited copy, and its targets if they
   * are not those of the routes.
   */
  readonly made?: { readonly from?: number; readonly targets?: readonly string[] | undefined }
}

export interface IntakeParts {
  readonly journal: Pick<Journal, 'append'>
  /** Determines the forwarding of a delivery. Must not throw. */
  readonly plan: (delivery: Delivery) => Plan
  readonly clock: Clock
  /** Called with each stored delivery. Must not throw, since the response does not depend on it. */
  readonly onDelivery?: ((delivery: Delivery, receipt: Receipt) => void) | undefined
}

export interface Intake {
  /**
   * Verifies a webhook request and stores it. Resolves once the delivery is on disk. Reads nothing but the signature
   * until that matches. Deliveries are stored in the order of the calls.
   * @throws RelayError `invalid_signature` if no configured secret made the signature; `invalid_event` if the event
   * header, the delivery header or the body is invalid; `storage` if it could not be stored, and `unavailable` if the
   * sender's keys could not be fetched, so that the sender may try again
   */
  receive(request: WebhookRequest, from: RequestOrigin): Promise<Receipt>
}

/** Creates the intake, the single entry point for deliveries, over HTTP and through a tunnel. */
export function createIntake(parts: IntakeParts): Intake {
  const { journal, clock, onDelivery } = parts
  return {
    async receive(request, from) {
      const delivery = await verified(request, from, clock())
      const plan = parts.plan(delivery)
      const targets = from.made?.targets ?? plan.targets
      const { onDuplicate = plan.onDuplicate, digestWindow } = from.source.sender
      const isOfDigest =
        digestWindow !== undefined &&
        !delivery.restored &&
        isOwnId(delivery.deliveryId, delivery.body, delivery.query)
      const receipt = await journal
        .append(delivery, {
          targets,
          ignoredBy: plan.ignoredBy,
          onDuplicate,
          sameWithin: isOfDigest ? digestWindow : undefined,
          since: from.waited && clock(),
        })
        .catch((cause: unknown) => {
          throw new RelayError('storage', 'Delivery could not be stored', { cause, forClients: true })
        })
      onDelivery?.(delivery, receipt)
      return receipt
    },
  }
}

/** Verifies a request with its source's secrets, and returns the delivery. */
async function verified(request: WebhookRequest, from: RequestOrigin, now: number): Promise<Delivery> {
  const { headers, body, query, path, payloadUrl } = request
  const { source, restored: how, made, waited } = from
  const at = waited?.at ?? from.at ?? now
  const { name, sender, secrets } = source
  const received = { lines: indexHeaders(headers), body, query, path, payloadUrl }
  const proven = await sender.authenticate(received, secrets)
  if (!proven) throw new RelayError('invalid_signature', 'Invalid signature')
  const { event, action, deliveryId, hookId, repo, number, kind, ref, proof } = sender.read(
    received,
    proven,
    at,
  )
  const restored = how === undefined ? undefined : { how, ...proof() }
  const shown = query === undefined ? '' : storedQuery(sender.withoutSecret(query))
  // Anybody can send a copy through a tunnel. What a user makes may have the body of another delivery.
  const isRepeatable = restored || (!made && sender.digestWindow !== undefined)
  const stored = storedEvent(name, { event, action })
  // Without spreads: one of them costs V8 more time than all of the members.
  return {
    hookId,
    repo,
    number,
    kind,
    ref,
    receivedAt: waited?.at ?? now,
    provider: name,
    scheme: sender.scheme === name ? undefined : sender.scheme,
    event: stored.event,
    action: stored.action,
    // Nothing proves the query of a message of a tunnel.
    deliveryId: deliveryId ?? (isRepeatable ? bodyDigest(body, restored ? '' : shown) : ownId(waited?.id)),
    headers: storedHeaders(headers, sender, { edited: made?.from, claims: sender.claimsOf(received) }),
    query: shown === '' ? undefined : shown,
    body,
    verifiedBy: proven.by,
    restored,
  }
}

/** Longest query in characters: as long as Node lets all headers of a request be. */
const MAX_QUERY = 16_384

/** Makes visible ASCII of a query, whose other bytes a sender ought to have escaped. */
function storedQuery(query: string): string {
  const escaped = (char: string): string =>
    Array.from(
      Buffer.from(char, 'latin1'),
      (byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`,
    ).join('')
  return query.replaceAll(/[^\x21-\x7e]/g, escaped).slice(0, MAX_QUERY)
}

/**
 * Removes headers with credentials. For an edited copy, adds the number of its original, which a request from outside
 * cannot claim, and for a token that is removed its claims.
 */
function storedHeaders(
  headers: readonly Header[],
  sender: Sender,
  { edited, claims }: { readonly edited: number | undefined; readonly claims: string | undefined },
): readonly Header[] {
  const isKept = (name: string): boolean => {
    const role = sender.roleOf(name)
    return role !== 'token' && (role === 'signature' || !isSecretHeader(name)) && !isRelayHeader(name)
  }
  const kept = headers.filter(([name]) => isKept(name.toLowerCase()))
  if (edited !== undefined) kept.push([EDITED_HEADER, String(edited)])
  if (claims !== undefined) kept.push([CLAIMS_HEADER, claims])
  return kept
}
