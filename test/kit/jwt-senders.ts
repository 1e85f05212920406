// Senders whose requests a JWT proves, made and verified by jose, as each one's page says.
import { createHash, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { exportJWK, jwtVerify, SignJWT } from 'jose'
import type { Header, WebhookRequest } from './delivery.js'
import { valueOf } from './key-senders.js'

type Claims = Readonly<Record<string, unknown>>
type Key = KeyObject | Uint8Array

export interface JwtSender {
  readonly name: string
  /** `KEYS` stands for the address of the sender's key set. */
  readonly scheme: string
  /** What the user enters. */
  readonly secret: string
  readonly alg: string
  readonly key: Key
  readonly otherKey: Key
  /** Key set that it publishes. */
  readonly published?: () => Promise<object>
  readonly kid?: string
  readonly body: string
  readonly event: string
  readonly id: string | undefined
  readonly header: string
  readonly prefix: string
  /** Name of the claim with the digest of the body. Undefined: none covers it. */
  readonly digest: string | undefined
  /** True if an old token is refused. */
  readonly isTimed: boolean
  readonly claims: (body: string, url: string) => Claims
  /** A claim that another request's token has otherwise. */
  readonly wrong?: readonly [claim: string, value: unknown]
  /** Verifies with what the user entered, or relay's own key, in its form. */
  readonly publicKey: (text: string) => Key
}

const sha256 = (body: string): string => createHash('sha256').update(body).digest('hex')
const SECRET = 'jwt-s3cret-0123456789-0123456789-0123456789'
const hs = { alg: 'HS256', secret: SECRET, key: Buffer.from(SECRET), otherKey: Buffer.from(`${SECRET}!`) }
const ofJwk = (text: string): KeyObject => {
  const jwk: unknown = JSON.parse(text)
  const [first] =
    typeof jwk === 'object' && jwk !== null && 'keys' in jwk && Array.isArray(jwk.keys) ? jwk.keys : [jwk]
  return createPublicKey({ key: first, format: 'jwk' })
}
const p256 = () => generateKeyPairSync('ec', { namedCurve: 'P-256' })
const rsa = () => generateKeyPairSync('rsa', { modulusLength: 2048 })

const plaidKey = p256()
const googleKey = rsa()
const ownKey = generateKeyPairSync('ed25519')

export const JWT_SENDERS: readonly JwtSender[] = [
  {
    name: 'netlify',
    scheme: 'netlify',
    ...hs,
    body: JSON.stringify({ id: 'd-1', state: 'ready', name: 'www' }),
    event: 'ready',
    id: undefined,
    header: 'X-Webhook-Signature',
    prefix: '',
    digest: 'sha256',
    isTimed: false,
    claims: (body) => ({ iss: 'netlify', sha256: sha256(body) }),
    wrong: ['iss', 'gatsby'],
    publicKey: (text) => Buffer.from(text),
  },
  {
    name: 'plaid',
    scheme: 'plaid',
    secret: JSON.stringify(plaidKey.publicKey.export({ format: 'jwk' })),
    alg: 'ES256',
    key: plaidKey.privateKey,
    otherKey: p256().privateKey,
    kid: 'bfbd5111-8e33-4643-8ced-b2e642a72f3c',
    body: JSON.stringify({ webhook_type: 'ITEM', webhook_code: 'ERROR', item_id: 'i1' }),
    event: 'ITEM.ERROR',
    id: undefined,
    header: 'Plaid-Verification',
    prefix: '',
    digest: 'request_body_sha256',
    isTimed: true,
    claims: (body) => ({ request_body_sha256: sha256(body) }),
    publicKey: ofJwk,
  },
  {
    name: 'jira-app',
    scheme: 'jira-app',
    ...hs,
    body: JSON.stringify({
      webhookEvent: 'jira:issue_created',
      issue: { fields: { project: { key: 'DEMO1' } } },
    }),
    event: 'jira:issue_created',
    id: undefined,
    header: 'Authorization',
    prefix: 'JWT ',
    digest: undefined,
    isTimed: true,
    claims: (_, url) => ({ iss: 'client-key', qsh: sha256(`POST&${new URL(url || 'http://a/').pathname}&`) }),
    wrong: ['qsh', 'context-qsh'],
    publicKey: (text) => Buffer.from(text),
  },
  {
    // The rules of google-pubsub, with a key set of this machine.
    name: 'pubsub',
    scheme:
      'jwt header=Authorization prefix=Bearer keys=KEYS claim=email iss=https://accounts.google.com aud={url} id=$.message.messageId',
    secret: 'push@project.iam.gserviceaccount.com',
    alg: 'RS256',
    key: googleKey.privateKey,
    otherKey: rsa().privateKey,
    published: async () => ({
      keys: [{ ...(await exportJWK(googleKey.publicKey)), kid: 'g1', use: 'sig', alg: 'RS256' }],
    }),
    kid: 'g1',
    body: JSON.stringify({ message: { messageId: '1', data: 'aGk=' }, subscription: 's' }),
    event: 'webhook',
    id: '1',
    header: 'Authorization',
    prefix: 'Bearer ',
    digest: undefined,
    isTimed: true,
    claims: (_, url) => ({
      iss: 'https://accounts.google.com',
      aud: url,
      email: 'push@project.iam.gserviceaccount.com',
    }),
    wrong: ['email', 'mallory@project.iam.gserviceaccount.com'],
    publicKey: ofJwk,
  },
  {
    name: 'own-jwt',
    scheme:
      'jwt header=X-Token algorithm=EdDSA body-claim=body_hash encoding=base64url key=pem event=$.kind id=$.id',
    secret: ownKey.publicKey.export({ type: 'spki', format: 'pem' }).toString(),
    alg: 'EdDSA',
    key: ownKey.privateKey,
    otherKey: generateKeyPairSync('ed25519').privateKey,
    body: JSON.stringify({ kind: 'paid', id: 'o-1' }),
    event: 'paid',
    id: 'o-1',
    header: 'X-Token',
    prefix: '',
    digest: 'body_hash',
    isTimed: true,
    claims: (body) => ({ body_hash: createHash('sha256').update(body).digest('base64url') }),
    publicKey: createPublicKey,
  },
]

interface TokenOptions {
  readonly body?: string
  readonly key?: Key
  readonly alg?: string
  readonly kid?: string
  readonly claims?: Claims
}

/** A request of the sender, whose token may be of another body, key, algorithm or time. */
export async function jwtRequest(
  sender: JwtSender,
  url: string,
  now: number,
  {
    body = sender.body,
    key = sender.key,
    alg = sender.alg,
    kid = sender.kid,
    claims = {},
  }: TokenOptions = {},
): Promise<WebhookRequest> {
  const iat = Math.floor(now / 1000)
  const time = sender.isTimed ? { iat, exp: iat + 180 } : {}
  const payload = { ...sender.claims(body, url), ...time, ...claims }
  const token =
    alg === 'none'
      ? `${[{ alg }, payload].map((each) => Buffer.from(JSON.stringify(each)).toString('base64url')).join('.')}.`
      : await new SignJWT(payload).setProtectedHeader({ alg, ...(kid !== undefined && { kid }) }).sign(key)
  const header: Header = [sender.header, sender.prefix + token]
  return { headers: [['Content-Type', 'application/json'], header], body: Buffer.from(sender.body) }
}

/** True if the token of a request is right by jose, at this time, and covers its body. */
export async function isRight(
  { header, prefix, digest, alg, claims }: JwtSender,
  request: WebhookRequest,
  key: Key,
  now: number,
): Promise<boolean> {
  try {
    const token = valueOf(request, header).slice(prefix.length)
    const { payload } = await jwtVerify(token, key, { algorithms: [alg], currentDate: new Date(now) })
    return digest === undefined || payload[digest] === claims(String(request.body), '')[digest]
  } catch {
    return false
  }
}
