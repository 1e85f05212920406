import { RelayError } from '../base/errors.js'
import { indexHeaders } from '../http/headers.js'
import type { WebhookRequest } from '../senders/request.js'
import type { Source } from '../senders/source.js'
import type { AppParts } from './parts.js'

/**
 * Answers a request that is a handshake of the source, and lists it. Undefined: it is none.
 * @throws RelayError `forbidden` for another verify token, or a secret that is not expected; `bad_request` for a
 * challenge that is not repeated
 */
export async function shakeHands(
  method: string,
  request: WebhookRequest,
  source: Source,
  { refusals, clock, expected, command }: Pick<AppParts, 'refusals' | 'clock' | 'expected' | 'command'>,
): Promise<Response | undefined> {
  const { sender, secrets } = source
  if (!sender.handshakeMethods.has(method)) return undefined
  const received = { ...request, method, lines: indexHeaders(request.headers) }
  const handshaken = await sender.handshake(received, secrets, clock())
  if (!handshaken) return undefined
  const { name } = handshaken
  const refuse = (error: RelayError, reason: string): RelayError => {
    refusals.handshake(request, source, { name, status: error.status, refusal: reason })
    return error
  }
  if ('refusal' in handshaken) {
    const { kind, reason } = handshaken.refusal
    if (kind === 'bad_request') throw refuse(new RelayError(kind, 'Invalid challenge'), reason)
    throw refuse(
      new RelayError(kind, 'Wrong verify token'),
      `${reason}, which ${command('source list')} shows`,
    )
  }
  const { secret } = handshaken.answer
  // Anybody could give the source another secret.
  if (secret && !expected.take(source.name, secret))
    throw refuse(
      new RelayError('forbidden', 'No secret is expected'),
      `it brings a secret, which relay takes only while ${command(`source add ${source.name} --handshake`)} waits for it`,
    )
  const { status, headers, body } = handshaken.answer
  refusals.handshake(request, source, { name, status })
  return new Response(method === 'HEAD' || status === 204 ? null : body, { status, headers })
}
