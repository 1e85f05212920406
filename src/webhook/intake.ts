import { hash } from 'node:crypto'
import { RelayError } from '../base/errors.js'
import type { WebhookSecrets } from '../base/settings.js'
import { type Clock, systemClock } from '../base/time.js'
import type { Delivery, Header, Receipt, Restored } from '../journal/delivery.js'
import type { Journal } from '../journal/journal.js'
import type { Provider } from '../providers/provider.js'
import { formPayload, isForm, signedBytes } from './form.js'
import { indexHeaders, only, withoutCredentials } from './headers.js'
import { readIdentity } from './identity.js'
import { SIGNATURE_HEADER, verify } from './signature.js'
import { summarize } from './summary.js'

/** A request as it came: every header line, and the body's exact bytes. */
export interface WebhookRequest {
  readonly headers: readonly Header[]
  readonly body: Uint8Array
}

export interface IntakeParts {
  readonly provider: Pick<Provider, 'name' | 'webhook'>
  readonly secrets: WebhookSecrets
  readonly journal: Pick<Journal, 'append'>
  readonly clock?: Clock | undefined
  /** Told of each delivery once it is stored. Must not throw: the sender is answered 200 whatever comes of it. */
  readonly onDelivery?: ((delivery: Delivery, receipt: Receipt) => void) | undefined
  /** Told of each request that no secret signed, before it is answered. Must not throw. */
  readonly onRefused?: ((request: WebhookRequest) => void) | undefined
}

export interface Intake {
  /**
   * Proves a webhook request genuine and stores it; resolved means that it is on disk. Nothing is looked at before
   * the signature fits. `how` says of one from a tunnel how its bytes were got back.
   * @throws RelayError `invalid_signature` when no configured secret made the signature.
   * @throws RelayError `invalid_event` when the event or delivery header, or the body, is not as it must be.
   * @throws RelayError `storage` when it could not be stored; the sender may try again.
   */
  receive(request: WebhookRequest, how?: string): Promise<Receipt>
}

/** The one way in for deliveries, however they reached this machine. */
export function createIntake(parts: IntakeParts): Intake {
  const { journal, clock = systemClock, onDelivery } = parts
  return {
    async receive(request, how) {
      const genuine = authenticate(request, parts, clock())
      const delivery = how === undefined ? genuine : { ...genuine, restored: restored(how, request, parts) }
      const receipt = await journal.append(delivery).catch((cause: unknown) => {
        throw new RelayError('storage', 'Delivery could not be stored', { cause })
      })
      onDelivery?.(delivery, receipt)
      return receipt
    },
  }
}

function restored(how: string, { headers, body }: WebhookRequest, { provider }: IntakeParts): Restored {
  const signed = signedBytes(indexHeaders(headers), body, provider.webhook) ?? body
  return { how, sha256: hash('sha256', signed, 'base64url') }
}

function authenticate({ headers, body }: WebhookRequest, parts: IntakeParts, receivedAt: number): Delivery {
  const { name, webhook } = parts.provider
  const lines = indexHeaders(headers)
  const signed = signedBytes(lines, body, webhook)
  const verifiedBy = signed && verify(only(lines, SIGNATURE_HEADER), signed, parts.secrets)
  if (!verifiedBy) {
    parts.onRefused?.({ headers, body })
    throw new RelayError('invalid_signature', 'Invalid signature')
  }
  const identity = readIdentity(lines, webhook)
  const json = isForm(lines) && webhook.formSignature === 'body' ? formPayload(body) : signed
  if (!json) throw new RelayError('invalid_event', 'Invalid event')
  const summary = summarize(json)
  return {
    receivedAt,
    provider: name,
    ...identity,
    ...summary,
    headers: withoutCredentials(headers),
    body,
    verifiedBy,
  }
}
