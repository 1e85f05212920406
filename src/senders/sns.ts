import type { WebhookSecrets } from '../base/settings.js'
import { parseUrl } from '../base/address.js'
import { RelayError, isError } from '../base/errors.js'
import { deadline } from '../base/wait.js'
import { fieldsOf } from '../json/parse.js'
import { CertificateSender, type Signed } from './certificate-sender.js'
import { readContent } from './content.js'
import type { HandshakeRequest, Handshaken } from './handshake.js'
import { type BodyKind, setMembers } from './members.js'
import type { IndexedRequest } from './proving.js'
import type { WebhookRequest } from './request.js'
import { type Unproved, unproved } from './unproved.js'

/** Hosts of Amazon SNS, as its validators know them. */
const HOST = /^sns\.[a-z0-9-]{3,40}\.amazonaws\.com(?:\.cn)?$/
/** Time for the confirmation of a subscription, in milliseconds. SNS waits 15 s for an answer. */
const CONFIRM_MS = 10_000
const CONFIRMATION = 'SubscriptionConfirmation'

/** Members that are signed, by type, in the order of their names. One that is missing is left out. */
const OF_NOTIFICATION = ['Message', 'MessageId', 'Subject', 'Timestamp', 'TopicArn', 'Type']
const OF_SUBSCRIPTION = ['Message', 'MessageId', 'SubscribeURL', 'Timestamp', 'Token', 'TopicArn', 'Type']

/**
 * Amazon SNS: a signature of some members of the body, and a subscription that the receiver confirms at an address of
 * SNS. The secret of a source is the ARN of its topic, since SNS signs the topics of all its customers.
 * @see https://docs.aws.amazon.com/sns/latest/dg/sns-verify-signature-of-message.html
 */
export class SnsSender extends CertificateSender {
  protected readonly hosts = HOST
  protected readonly ownerWords = 'topic'
  override readonly handshakeMethods: ReadonlySet<string> = new Set(['POST'])

  override get handshakes(): readonly string[] {
    return [CONFIRMATION]
  }

  /** Confirms a subscription to the topic of the source, once its signature is proved. */
  override async handshake(
    request: HandshakeRequest,
    secrets: WebhookSecrets,
  ): Promise<Handshaken | undefined> {
    if (request.method !== 'POST' || request.body.byteLength > MAX_CONFIRMATION) return undefined
    const { Type: type, SubscribeURL: address } = membersOf(request.body)
    if (type !== CONFIRMATION) return undefined
    const proven = await this.authenticate(request, secrets)
    if (!proven) return undefined
    // A confirmation that relay itself made belongs to no subscription.
    if (proven.by !== 'own') await confirm(String(address))
    return {
      name: CONFIRMATION,
      answer: { status: 200, headers: { 'Content-Type': 'text/plain' }, body: 'ok' },
    }
  }

  protected signedOf({ body }: IndexedRequest): Signed | Unproved {
    const members = membersOf(body)
    const {
      Signature: signature,
      SignatureVersion: version,
      SigningCertURL: address,
      TopicArn: owner,
    } = members
    if (typeof signature !== 'string' || signature === '')
      return unproved(
        'no_signature',
        'there is no member $.Signature: is raw message delivery on? Turn it off at the subscription',
      )
    if (typeof address !== 'string') return unproved('no_signature', 'there is no member $.SigningCertURL')
    if (version !== '1' && version !== '2')
      return unproved('wrong_algorithm', 'its SignatureVersion is neither 1 nor 2')
    if (typeof owner !== 'string') return unproved('malformed_part', 'there is no member $.TopicArn')
    const text = textOf(members)
    return {
      signature: Buffer.from(signature, 'base64'),
      algorithm: version === '1' ? 'rsa-sha1' : 'rsa-sha256',
      address: address.endsWith('.pem') ? address : '',
      owner,
      text: () => text,
    }
  }

  override sign(
    request: WebhookRequest,
    secrets: WebhookSecrets,
    now: number,
    kind: BodyKind,
  ): WebhookRequest {
    const timed = setMembers(
      request.body,
      [
        [['Timestamp'], new Date(now).toISOString()],
        [['TopicArn'], secrets.current.reveal()],
        [['SignatureVersion'], '2'],
      ],
      kind,
    )
    const signature = this.ownSignature(secrets, textOf(membersOf(timed)), 'rsa-sha256').toString('base64')
    return { ...request, body: setMembers(timed, [[['Signature'], signature]], kind) }
  }
}

/** Largest confirmation in bytes: the known ones have 1,800. */
const MAX_CONFIRMATION = 16_384

function membersOf(body: Uint8Array): Readonly<Record<string, unknown>> {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  // Hardly any other request is parsed before its proof.
  return bytes.includes('"Signature"') ? fieldsOf(readContent(body).value) : {}
}

function textOf(members: Readonly<Record<string, unknown>>): string {
  const { Type: type } = members
  const names = type === 'Notification' ? OF_NOTIFICATION : OF_SUBSCRIPTION
  return names
    .flatMap((name) => {
      const { [name]: value } = members
      return typeof value === 'string' ? [`${name}\n${value}\n`] : []
    })
    .join('')
}

/**
 * Opens the address that confirms a subscription.
 * @throws RelayError `forbidden` for one that is not of SNS; `unavailable`, so that SNS asks again
 */
async function confirm(address: string): Promise<void> {
  const url = parseUrl(address)
  if (url?.protocol !== 'https:' || url.port !== '' || url.username !== '' || !HOST.test(url.hostname))
    throw new RelayError('forbidden', 'Wrong address of confirmation')
  const { sendOnce } = await import('../net/client.js')
  try {
    const response = await sendOnce(address, { method: 'GET', headers: {}, signal: deadline(CONFIRM_MS) })
    response.discard()
    if (response.status === 200) return
    throw new Error(`it was answered ${response.status}`)
  } catch (cause) {
    throw new RelayError('unavailable', 'The subscription could not be confirmed', {
      cause,
      forClients: true,
      detail: `${url.origin}: ${isError(cause) ? cause.message : 'unknown'}`,
    })
  }
}
