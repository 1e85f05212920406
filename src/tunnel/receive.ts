import { RelayError, toRelayError } from '../base/errors.js'
import type { Log } from '../base/log.js'
import type { WebhookSecrets } from '../base/settings.js'
import { createSparing } from '../base/sparing.js'
import type { WebhookScheme } from '../providers/provider.js'
import { type HeaderLines, indexHeaders, only } from '../webhook/headers.js'
import type { Intake } from '../webhook/intake.js'
import { refusalHint } from '../webhook/refusals.js'
import { restore } from '../webhook/restore.js'
import { isSignature, SIGNATURE_HEADER } from '../webhook/signature.js'
import { type Message, readMessage } from './message.js'
import { saysItIsRoundTrip } from './round-trip.js'

export interface ReceiveParts {
  readonly intake: Intake
  readonly secrets: WebhookSecrets
  readonly scheme: WebhookScheme
  /** Bytes. */
  readonly maxBody: number
  readonly log: Log
  /** Whether a message is one that relay sent to itself, and so not for the intake. */
  readonly isOwn: (message: Message, lines: HeaderLines) => Promise<boolean>
}

/**
 * What becomes of a message: a delivery for the intake, and for nothing else, or a line that says why not. Costs one
 * attempt to restore the body; the signature decides. False when it was refused. Does not throw.
 */
export function createReceiver(parts: ReceiveParts): (text: string) => Promise<boolean> {
  const { log } = parts
  const sparingly = createSparing((count) => log.warn(`another ${count} messages of the tunnel were refused`))
  const refuse = (why: () => string): false => {
    sparingly(() => log.warn(`a message of the tunnel was refused: ${why()}`))
    return false
  }
  return async (text) => {
    try {
      const why = await receive(text, parts)
      return why === undefined ? true : refuse(why)
    } catch (thrown) {
      const error = toRelayError(thrown)
      if (error.kind === 'invalid_event' || error.kind === 'too_large') return refuse(() => error.message)
      log.error(`a delivery of the tunnel is lost: ${error.message}`, error)
      return true
    }
  }
}

async function receive(text: string, parts: ReceiveParts): Promise<(() => string) | undefined> {
  const message = readMessage(text)
  if (!message) return undefined
  const { headers, remains } = message
  const lines = indexHeaders(headers)
  if (await parts.isOwn(message, lines)) return undefined
  const restored = await restore(remains, lines, parts)
  if (!restored) return () => whyNot(message, lines, parts)
  const { body, how } = restored
  if (body.byteLength > parts.maxBody) throw new RelayError('too_large', 'Request too large')
  await parts.intake.receive({ headers, body }, how)
  return undefined
}

/** Where the bytes themselves are there, a signature that does not fit them is wrong; else nobody can tell. */
function whyNot({ headers, remains }: Message, lines: HeaderLines, parts: ReceiveParts): string {
  if (saysItIsRoundTrip(lines)) return 'another relay listens on this channel, and sent it to itself'
  const { raw } = remains
  if (!raw && isSignature(only(lines, SIGNATURE_HEADER)))
    return 'unverifiable through this tunnel (another secret, or bytes that it lost)'
  return `invalid signature (${refusalHint({ headers, body: raw ?? new Uint8Array() }, parts)})`
}
