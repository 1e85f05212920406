import { toRelayError } from '../base/errors.js'
import type { Log } from '../base/log.js'
import { type HeaderLines, indexHeaders } from '../webhook/headers.js'
import type { Intake, WebhookRequest } from '../webhook/intake.js'
import type { Refusals } from '../webhook/refusals.js'
import type { LargeMessages } from './large.js'
import { type Message, readMessage } from './message.js'
import type { Received } from './smee.js'
import { unpack, type Unpacked, type UnpackParts } from './unpack.js'

export interface ReceiveParts extends UnpackParts {
  readonly intake: Intake
  readonly refusals: Refusals
  readonly log: Log
  /** Reads large messages. */
  readonly large: LargeMessages
  /** Whether relay sent the message to itself, so that it is not for the intake. */
  readonly isOwn: (message: Message, lines: HeaderLines) => Promise<boolean>
}

/**
 * Returns a handler that passes a message to the intake as a delivery, or reports why it was refused. The handler returns
 * false for a refused message, and does not throw.
 */
export function createReceiver(parts: ReceiveParts): (message: Received) => Promise<boolean> {
  const { intake, refusals, log } = parts
  return async (message) => {
    let request: WebhookRequest = {
      headers: [],
      body: Buffer.from(typeof message === 'string' ? message : ''),
    }
    try {
      const unpacked = await (typeof message === 'string' ? read(message, parts) : parts.large.read(message))
      if (!unpacked) return true
      ;({ request = request } = unpacked)
      if ('refused' in unpacked) {
        await refusals.tunnel(request, unpacked.refused)
        return false
      }
      await intake.receive(unpacked.request, unpacked.how)
      return true
    } catch (thrown) {
      const error = toRelayError(thrown)
      if (error.kind === 'invalid_event' || error.kind === 'too_large') {
        await refusals.tunnel(request, error)
        return false
      }
      log.error(`a delivery from the tunnel was lost: ${error.message}`, error)
      return true
    }
  }
}

async function read(text: string, parts: ReceiveParts): Promise<Unpacked | undefined> {
  const message = readMessage(text)
  if (!message) return undefined
  const lines = indexHeaders(message.headers)
  return (await parts.isOwn(message, lines)) ? undefined : unpack(message, lines, parts)
}
