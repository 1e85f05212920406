import { toRelayError } from '../base/errors.js'
import type { Log } from '../base/log.js'
import { createLogThrottle } from '../base/log-throttle.js'
import { type HeaderLines, indexHeaders } from '../webhook/headers.js'
import type { Intake } from '../webhook/intake.js'
import { MAX_INLINE, messageText, type RawEvent } from './events.js'
import type { LargeMessages } from './large.js'
import { type Message, readMessage } from './message.js'
import type { Handling } from './queue.js'
import { rejectionReason, unpack, type Unpacked, type UnpackParts } from './unpack.js'

export interface ReceiveParts extends UnpackParts {
  readonly intake: Intake
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

type Reason = () => string | Promise<string>

const REFUSED = 'a tunnel message was refused'
/** Unsigned messages that are read in a second, to say what they are. Anybody may send any number. */
const MAX_EXPLAINED = 10
const UNSIGNED: Reason = () => 'invalid signature (there is no X-Hub-Signature-256, or it is malformed)'
const ACCEPTED = Promise.resolve(true)

export function createReceiver(parts: ReceiveParts): Receiver {
  const { log, intake } = parts
  const throttle = createLogThrottle(log)
  const explained = createAllowance(MAX_EXPLAINED)
  /** Every refused message comes here; `message` is undefined if it was not read. */
  const refuse = async (_message: Message | undefined, reason: Reason): Promise<false> => {
    let isLogged = false
    throttle(REFUSED, () => (isLogged = true))
    if (isLogged) log.warn(`${REFUSED}: ${await reason()}`)
    return false
  }
  const fail = async (message: Message | undefined, thrown: unknown): Promise<boolean> => {
    const error = toRelayError(thrown)
    if (error.kind === 'invalid_event' || error.kind === 'too_large')
      return refuse(message, () => error.message)
    log.error(`a delivery from the tunnel was lost: ${error.message}`, error)
    return true
  }
  const store = ({ request: { headers, body }, how }: Verified): Promise<boolean> =>
    intake.receive({ headers, body }, how).then(
      () => true,
      (error: unknown) => fail({ headers, body: { json: undefined, raw: body } }, error),
    )
  return {
    async receive(event) {
      try {
        const unpacked = await (event.length > MAX_INLINE ? parts.large.read(event) : read(event, parts))
        if (!unpacked) return { accepted: ACCEPTED }
        if ('refused' in unpacked) return { accepted: refuse(unpacked.message, unpacked.refused) }
        return { accepted: store(unpacked) }
      } catch (error) {
        return { accepted: fail(undefined, error) }
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
        if (message)
          await refuse(message, () => rejectionReason(message, indexHeaders(message.headers), parts))
      } catch (error) {
        await fail(undefined, error)
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
