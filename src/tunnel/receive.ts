import { toRelayError } from '../base/errors.js'
import type { Log } from '../base/log.js'
import { type HeaderLines, indexHeaders } from '../http/headers.js'
import type { Intake, WebhookRequest } from '../webhook/intake.js'
import type { Refusals, TunnelRefusal } from '../webhook/refusals.js'
import { MAX_INLINE, messageText, type RawEvent } from './events.js'
import type { LargeMessages } from './large.js'
import { type Message, readMessage } from './message.js'
import type { Handling } from './queue.js'
import { arrived, rejectionReason, unpack, type Unpacked, type UnpackParts } from './unpack.js'

export interface ReceiveParts extends UnpackParts {
  /** The name of the sender. */
  readonly source: string
  readonly intake: Intake
  readonly refusals: Refusals
  readonly log: Log
  /** Reads large messages. */
  readonly large: LargeMessages
  /** Whether relay sent the message to itself, so that it is not for the intake. */
  readonly isOwn: (message: Message, lines: HeaderLines) => Promise<boolean>
}

export interface Receiver {
  /**
   * Restores the delivery in a message and passes it to the intake. Resolves once the intake has it: deliveries are stored in
   * the order of the calls. Does not throw.
   */
  readonly receive: (event: RawEvent) => Promise<Handling>
  /** Reports a message without a well-formed signature. */
  readonly refuseUnsigned: (event: RawEvent) => Promise<void>
}

/** Unsigned messages that are read in a second, to say what they are. Anybody may send any number. */
const MAX_EXPLAINED = 10
const UNSIGNED: TunnelRefusal = {
  reason: () => 'invalid signature (there is no X-Hub-Signature-256, or it is malformed)',
}
const ACCEPTED = Promise.resolve(true)

export function createReceiver(parts: ReceiveParts): Receiver {
  const { intake, refusals, log } = parts
  const explained = createAllowance(MAX_EXPLAINED)
  /** Every refused message comes here; `request` is undefined if it was not read. */
  const refuse = async (request: WebhookRequest | undefined, refusal: TunnelRefusal): Promise<false> => {
    await refusals.tunnel(request, refusal)
    return false
  }
  const fail = async (request: WebhookRequest | undefined, thrown: unknown): Promise<boolean> => {
    const error = toRelayError(thrown)
    if (error.kind === 'invalid_event' || error.kind === 'too_large') return refuse(request, error)
    log.error(`a delivery from the tunnel was lost: ${error.message}`, error)
    return true
  }
  const store = ({ request, how }: Verified): Promise<boolean> =>
    intake.receive(request, { source: parts.source, restored: how }).then(
      () => true,
      (error: unknown) => fail(request, error),
    )
  return {
    async receive(event) {
      try {
        const unpacked = await (event.length > MAX_INLINE ? parts.large.read(event) : read(event, parts))
        if (!unpacked) return { accepted: ACCEPTED }
        if ('refused' in unpacked) return { accepted: refuse(unpacked.request, unpacked.refused) }
        return { accepted: store(unpacked) }
      } catch (error) {
        return { accepted: fail(unread(event), error) }
      }
    },
    async refuseUnsigned(event) {
      if (event.length > MAX_INLINE || !explained()) {
        await refuse(undefined, UNSIGNED)
        return
      }
      try {
        const text = messageText(event)
        const message = text === undefined ? undefined : readMessage(text)
        if (!message) return
        const reason = () => rejectionReason(message, indexHeaders(message.headers), parts)
        await refuse(arrived(message), { reason })
      } catch (error) {
        await fail(unread(event), error)
      }
    },
  }
}

type Verified = Extract<Unpacked, { readonly how: unknown }>

async function read(event: RawEvent, parts: ReceiveParts): Promise<Unpacked | undefined> {
  const text = messageText(event)
  const message = text === undefined ? undefined : readMessage(text)
  if (!message) return undefined
  const lines = indexHeaders(message.headers)
  return (await parts.isOwn(message, lines)) ? undefined : unpack(message, lines, parts)
}

/** A message that cannot be read, as text. */
function unread(event: RawEvent): WebhookRequest | undefined {
  const text = event.length > MAX_INLINE ? undefined : messageText(event)
  return text === undefined ? undefined : { headers: [], body: Buffer.from(text) }
}

/** Returns a function that is true at most `count` times a second. */
function createAllowance(count: number): () => boolean {
  let left = count
  let since = performance.now()
  return () => {
    const now = performance.now()
    if (now - since >= 1000) [since, left] = [now, count]
    return left-- > 0
  }
}
