import { toRelayError } from '../base/errors.js'
import type { Log } from '../base/log.js'
import { createLogThrottle } from '../base/log-throttle.js'
import { type HeaderLines, indexHeaders } from '../webhook/headers.js'
import type { Intake } from '../webhook/intake.js'
import type { LargeMessages } from './large.js'
import { type Message, readMessage } from './message.js'
import type { Received } from './smee.js'
import { unpack, type Unpacked, type UnpackParts } from './unpack.js'

export interface ReceiveParts extends UnpackParts {
  readonly intake: Intake
  readonly log: Log
  /** Reads large messages. */
  readonly large: LargeMessages
  /** Whether relay sent the message to itself, so that it is not for the intake. */
  readonly isOwn: (message: Message, lines: HeaderLines) => Promise<boolean>
}

const REFUSED = 'a tunnel message was refused'

/**
 * Returns a handler that passes a message to the intake as a delivery, or logs why it was refused. The handler returns
 * false for a refused message, and does not throw.
 */
export function createReceiver(parts: ReceiveParts): (message: Received) => Promise<boolean> {
  const { log } = parts
  const throttle = createLogThrottle(log)
  const refuse = async (reason: () => string | Promise<string>): Promise<false> => {
    let isLogged = false
    throttle(REFUSED, () => (isLogged = true))
    if (isLogged) log.warn(`${REFUSED}: ${await reason()}`)
    return false
  }
  return async (message) => {
    try {
      const reason = await receive(message, parts)
      return reason === undefined ? true : await refuse(reason)
    } catch (thrown) {
      const error = toRelayError(thrown)
      if (error.kind === 'invalid_event' || error.kind === 'too_large')
        return await refuse(() => error.message)
      log.error(`a delivery from the tunnel was lost: ${error.message}`, error)
      return true
    }
  }
}

/** Why the message was refused; undefined if it was not. */
async function receive(
  received: Received,
  parts: ReceiveParts,
): Promise<(() => string | Promise<string>) | undefined> {
  const unpacked = await (typeof received === 'string' ? read(received, parts) : parts.large.read(received))
  if (!unpacked) return undefined
  if ('refused' in unpacked) return unpacked.refused
  await parts.intake.receive(unpacked.request, unpacked.how)
  return undefined
}

async function read(text: string, parts: ReceiveParts): Promise<Unpacked | undefined> {
  const message = readMessage(text)
  if (!message) return undefined
  const lines = indexHeaders(message.headers)
  return (await parts.isOwn(message, lines)) ? undefined : unpack(message, lines, parts)
}
