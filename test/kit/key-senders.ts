// Senders that sign with a key pair, signed as each one's own page or package says, by code that is not relay's.
import { createPublicKey, generateKeyPairSync, type KeyObject, sign, verify } from 'node:crypto'
import { EventWebhook } from '@sendgrid/eventwebhook'
import { verifyKey } from 'discord-interactions'
import type { Header, WebhookRequest } from './delivery.js'

/** The sender's half of a key pair, and the other as its page shows it. */
interface Pair {
  readonly privateKey: KeyObject
  readonly publicKey: KeyObject
}

export interface KeySender {
  /** Of its source. */
  readonly name: string
  readonly scheme: string
  /** The public key, as its page shows it. */
  readonly key: string
  /** Another public key of the same kind. */
  readonly otherKey: string
  readonly body: string
  /** How relay lists it. */
  readonly event: string
  /** Undefined: it has none, and each request is a delivery of its own. */
  readonly id: string | undefined
  /** True if it signs a time. */
  readonly isTimed: boolean
  /** The headers of a request at this time, in milliseconds since 1970-01-01 UTC. */
  readonly sign: (body: string, now: number) => readonly Header[]
  /** What the sender's package, or the published recipe, says of a request, with a key in the form of `key`. */
  readonly verify: (request: WebhookRequest, key: string) => boolean | Promise<boolean>
  /** The header of the signature, and where it begins in that. */
  readonly header: string
}

const seconds = (now: number): string => String(Math.floor(now / 1000))
export const valueOf = ({ headers }: WebhookRequest, name: string): string =>
  headers.find(([each]) => each.toLowerCase() === name.toLowerCase())?.[1] ?? ''

const ed25519 = (): Pair => generateKeyPairSync('ed25519')
const p256 = (): Pair => generateKeyPairSync('ec', { namedCurve: 'P-256' })
const rsa = (): Pair => generateKeyPairSync('rsa', { modulusLength: 2048 })

const spki = ({ publicKey }: Pair): Buffer => publicKey.export({ type: 'spki', format: 'der' })
/** The 32 bytes of an Ed25519 key, without what DER has before them. */
const raw = (pair: Pair): Buffer => spki(pair).subarray(-32)
const pem = ({ publicKey }: Pair): string => publicKey.export({ type: 'spki', format: 'pem' }).toString()
const fromRaw = (bytes: Buffer): KeyObject =>
  createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x: bytes.toString('base64url') }, format: 'jwk' })

type Row = Omit<KeySender, 'key' | 'otherKey' | 'sign' | 'scheme' | 'isTimed'> &
  Partial<Pick<KeySender, 'scheme' | 'isTimed'>>

function row(
  make: () => Pair,
  write: (pair: Pair) => string,
  given: Row,
  signed: (body: string, now: number, key: KeyObject) => readonly Header[],
): KeySender {
  const [own, other] = [make(), make()]
  return {
    scheme: given.name,
    isTimed: true,
    ...given,
    key: write(own),
    otherKey: write(other),
    sign: (body, now) => signed(body, now, own.privateKey),
  }
}

const discord = row(
  ed25519,
  (pair) => raw(pair).toString('hex'),
  {
    name: 'discord',
    body: JSON.stringify({ id: '1', type: 2, data: { name: 'hello' } }),
    event: '2',
    id: '1',
    header: 'X-Signature-Ed25519',
    verify: (request, key) =>
      verifyKey(
        request.body,
        valueOf(request, 'X-Signature-Ed25519'),
        valueOf(request, 'X-Signature-Timestamp'),
        key,
      ),
  },
  (body, now, key) => [
    ['X-Signature-Ed25519', sign(null, Buffer.from(seconds(now) + body), key).toString('hex')],
    ['X-Signature-Timestamp', seconds(now)],
  ],
)

const sendgrid = row(
  p256,
  (pair) => spki(pair).toString('base64'),
  {
    name: 'sendgrid',
    body: `${JSON.stringify([{ event: 'delivered', sg_event_id: 'e1' }])}\r\n`,
    event: 'delivered',
    id: undefined,
    header: 'X-Twilio-Email-Event-Webhook-Signature',
    verify(request, key) {
      const hook = new EventWebhook()
      return hook.verifySignature(
        hook.convertPublicKeyToECDSA(key),
        request.body,
        valueOf(request, 'X-Twilio-Email-Event-Webhook-Signature'),
        valueOf(request, 'X-Twilio-Email-Event-Webhook-Timestamp'),
      )
    },
  },
  (body, now, key) => [
    [
      'X-Twilio-Email-Event-Webhook-Signature',
      sign('sha256', Buffer.from(seconds(now) + body), key).toString('base64'),
    ],
    ['X-Twilio-Email-Event-Webhook-Timestamp', seconds(now)],
  ],
)

const telnyx = row(
  ed25519,
  (pair) => raw(pair).toString('base64'),
  {
    name: 'telnyx',
    body: JSON.stringify({ data: { event_type: 'message.received', id: 't-1' } }),
    event: 'message.received',
    id: 't-1',
    header: 'telnyx-signature-ed25519',
    verify: (request, key) =>
      verify(
        null,
        Buffer.from(`${valueOf(request, 'telnyx-timestamp')}|${String(request.body)}`),
        fromRaw(Buffer.from(key, 'base64')),
        Buffer.from(valueOf(request, 'telnyx-signature-ed25519'), 'base64'),
      ),
  },
  (body, now, key) => [
    ['telnyx-signature-ed25519', sign(null, Buffer.from(`${seconds(now)}|${body}`), key).toString('base64')],
    ['telnyx-timestamp', seconds(now)],
  ],
)

/** `v1a` of https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md */
const standards = (['webhook', 'svix'] as const).map((name) =>
  row(
    ed25519,
    (pair) => `whpk_${raw(pair).toString('base64')}`,
    {
      name,
      scheme: 'standard',
      body: JSON.stringify({ type: 'invoice.paid', data: { id: 1 } }),
      event: 'invoice.paid',
      id: 'msg_1',
      header: `${name}-signature`,
      verify(request, key) {
        const [id, time] = [`${name}-id`, `${name}-timestamp`].map((each) => valueOf(request, each))
        const all = valueOf(request, `${name}-signature`).split(' ')
        const text = Buffer.from(`${id}.${time}.${String(request.body)}`)
        const publicKey = fromRaw(Buffer.from(key.slice('whpk_'.length), 'base64'))
        return all.some(
          (each) =>
            each.startsWith('v1a,') && verify(null, text, publicKey, Buffer.from(each.slice(4), 'base64')),
        )
      },
    },
    (body, now, key) => [
      [`${name}-id`, 'msg_1'],
      [`${name}-timestamp`, seconds(now)],
      [
        `${name}-signature`,
        // A sender that changes from secrets to keys sends both.
        `v1,${'A'.repeat(43)}= v1a,${sign(null, Buffer.from(`msg_1.${seconds(now)}.${body}`), key).toString('base64')}`,
      ],
    ],
  ),
)

const OWN_BODY = JSON.stringify({ kind: 'paid', id: 'o-1' })
const ownRow = (
  name: string,
  scheme: string,
  make: () => Pair,
  write: (pair: Pair) => string,
  encoding: 'hex' | 'base64' | 'base64url',
  {
    hash,
    form = {},
    read = createPublicKey,
  }: {
    readonly hash: string | null
    readonly form?: { readonly dsaEncoding?: 'ieee-p1363' }
    readonly read?: (key: string) => KeyObject
  },
): KeySender =>
  row(
    make,
    write,
    {
      name,
      scheme: `${scheme} header=X-Sign encoding=${encoding} event=$.kind id=$.id`,
      body: OWN_BODY,
      event: 'paid',
      id: 'o-1',
      isTimed: false,
      header: 'X-Sign',
      verify: (request, key) =>
        verify(
          hash,
          request.body,
          { key: read(key), ...form },
          Buffer.from(valueOf(request, 'X-Sign'), encoding),
        ),
    },
    (body, _, key) => [['X-Sign', sign(hash, Buffer.from(body), { key, ...form }).toString(encoding)]],
  )

const owns: readonly KeySender[] = [
  ownRow('own-ed25519', 'ed25519', ed25519, pem, 'base64', { hash: null }),
  ownRow('own-ecdsa', 'ecdsa', p256, pem, 'hex', { hash: 'sha256' }),
  ownRow('own-ecdsa-raw', 'ecdsa format=raw', p256, pem, 'base64url', {
    hash: 'sha256',
    form: { dsaEncoding: 'ieee-p1363' },
  }),
  ownRow('own-rsa', 'rsa', rsa, pem, 'base64', { hash: 'sha256' }),
  ownRow(
    'own-rsa-sha1',
    'rsa algorithm=sha1 key=jwk',
    rsa,
    ({ publicKey }) => JSON.stringify(publicKey.export({ format: 'jwk' })),
    'base64',
    {
      hash: 'sha1',
      read: (key) => createPublicKey({ key: JSON.parse(key), format: 'jwk' }),
    },
  ),
]

export const KEY_SENDERS: readonly KeySender[] = [discord, sendgrid, telnyx, ...standards, ...owns]

/** A request of the sender. */
export function keyRequest(sender: KeySender, now: number, body = sender.body): WebhookRequest {
  return {
    headers: [['Content-Type', 'application/json'], ...sender.sign(body, now)],
    body: Buffer.from(body),
  }
}
