import { hash } from 'node:crypto'
import { RelayError } from '../base/errors.js'
import { formPayload } from '../base/form.js'
import { createOrder } from '../base/in-order.js'
import type { WebhookSecrets } from '../base/settings.js'
import { type Clock, systemClock } from '../base/time.js'
import { inTurns, type Steps } from '../base/turns.js'
import type { Header } from '../http/headers.js'
import type { Delivery, Plan, Receipt, Restored } from '../journal/types.js'
import type { Journal } from '../journal/journal.js'
import type { WebhookScheme } from '../providers/provider.js'
import { isForm, signedBytesSteps } from './form.js'
import { proveEvent } from './event-proof.js'
import { indexHeaders, only, storedHeaders } from './headers.js'
import { readIdentity } from './identity.js'
import { SIGNATURE_HEADER, verifySteps } from './signature.js'
import { parsePayload, summarize } from './summary.js'

/** A received request: every header line, and the body's exact bytes. */
export interface WebhookRequest {
  readonly headers: readonly Header[]
  readonly body: Uint8Array
}

export interface IntakeParts {
  readonly senders: Senders
  readonly journal: Pick<Journal, 'append'>
  /** What becomes of a delivery. Must not throw. */
  readonly plan: (delivery: Delivery) => Plan
  readonly clock?: Clock | undefined
  /**
   * Called with each stored delivery. Must not throw: the answer does not depend on it.
   */
  readonly onDelivery?: ((delivery: Delivery, receipt: Receipt) => void) | undefined
}

/** How the deliveries of one source are signed. */
export interface Sender {
  readonly scheme: WebhookScheme
  readonly secrets: WebhookSecrets
}

/** The sender with this name; undefined if relay does not know it. Today there is one: the code host. */
export type Senders = (source: string) => Sender | undefined

/** Where a request came from. */
export interface From {
  /** The name of its sender, for {@link Senders}. */
  readonly source: string
  /**
   * How the bytes of a tunnel's message were restored. Such deliveries are stored in the order of the calls, and their payload must
   * fit their event, since anybody who knows the channel may have written the headers.
   */
  readonly restored?: string | undefined
  readonly edited?: Edited
}

/** A delivery that a user edited and sent. */
export interface Edited {
  /** The number of the entry that it is a copy of. */
  readonly from: number
  /** The ids of the targets that it is forwarded to. Default: those of the routes. */
  readonly targets?: readonly string[] | undefined
}

export interface Intake {
  /**
   * Verifies a webhook request and stores it. Resolves once the delivery is on disk. Reads nothing but the signature
   * until that matches.
   * @throws RelayError `invalid_signature` if no configured secret made the signature.
   * @throws RelayError `invalid_event` if the event header, the delivery header or the body is invalid.
   * @throws RelayError `storage` if it could not be stored; the sender may try again.
   */
  receive(request: WebhookRequest, from: From): Promise<Receipt>
}

/** The single entry point for deliveries, over HTTP and through a tunnel. */
export function createIntake(parts: IntakeParts): Intake {
  const { journal, clock = systemClock, onDelivery } = parts
  const inOrder = createOrder()
  return {
    async receive(request, source) {
      const authenticated = inTurns(authenticate(request, parts, clock(), source))
      const delivery = await (source.restored === undefined ? authenticated : inOrder(authenticated))
      const plan = parts.plan(delivery)
      const targets = source.edited?.targets ?? plan.targets
      const receipt = await journal.append(delivery, { ...plan, targets }).catch((cause: unknown) => {
        throw new RelayError('storage', 'Delivery could not be stored', { cause })
      })
      onDelivery?.(delivery, receipt)
      return receipt
    },
  }
}

/**
 * The payload of a form that is signed as a whole. It must be the first field: Content-Type is not signed, and a comment in
 * a JSON body may contain `&payload=…`.
 */
function signedPayload(body: Uint8Array): Uint8Array | undefined {
  return Buffer.from(body.subarray(0, FIRST_FIELD.length)).equals(FIRST_FIELD) ? formPayload(body) : undefined
}

const FIRST_FIELD = Buffer.from('payload=')

/** Works in steps until the signature is verified: anybody may send a large body. */
function* authenticate(
  { headers, body }: WebhookRequest,
  parts: IntakeParts,
  receivedAt: number,
  { source, restored: how, edited }: From,
): Steps<Delivery> {
  const sender = parts.senders(source)
  if (!sender) throw new RelayError('not_found', `Unknown sender ${source}`)
  const { scheme: webhook, secrets } = sender
  const lines = indexHeaders(headers)
  const signed = yield* signedBytesSteps(lines, body, webhook)
  const verifiedBy = signed && (yield* verifySteps(only(lines, SIGNATURE_HEADER), signed, secrets))
  if (!verifiedBy) throw new RelayError('invalid_signature', 'Invalid signature')
  const identity = readIdentity(lines, webhook)
  const json = isForm(lines) && webhook.formSignature === 'body' ? signedPayload(body) : signed
  if (!json) throw new RelayError('invalid_event', 'Invalid event')
  const payload = parsePayload(json)
  const restored: Restored | undefined =
    how === undefined
      ? undefined
      : {
          how,
          sha256: hash('sha256', signed, 'base64url'),
          ...proveEvent(identity.event, payload, webhook.events),
        }
  return {
    receivedAt,
    provider: source,
    ...identity,
    ...summarize(payload, webhook),
    headers: storedHeaders(headers, edited?.from),
    body,
    verifiedBy,
    ...(restored && { restored }),
  }
}
