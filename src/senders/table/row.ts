import { isInBody, type Proof, type SignedTime, type ValueLocation, type WebhookScheme } from '../scheme.js'
import { canonicalHeaderName } from '../../http/headers.js'
import type { KeyAlgorithm } from '../algorithms.js'
import type { JwtRules } from '../jwt.js'
import type { TimeUnit } from '../time.js'

/**
 * A sender that relay knows by name, without that name. Omitted fields have the usual values: JSON, no repository, and no
 * id. `page` documents what the row says.
 */
export interface SenderRow
  extends
    Pick<WebhookScheme, 'proofs' | 'event'>,
    Partial<Omit<WebhookScheme, 'proofs' | 'event' | 'headers'>> {
  /** Name in the sender's own spelling. */
  readonly title: string
  /** Address of the page that says how it signs. */
  readonly page: string
  /** Description of its secret and of the place where it shows it, to follow the words "it is". */
  readonly secret: string
  /** Beginning of its secrets, where those of other senders that begin so are no secrets but API keys. */
  readonly secretLike?: RegExp
  /** User-Agent of its requests. */
  readonly agent?: string
}

export type SenderRows = Readonly<Record<string, SenderRow>>

const FIVE_MINUTES = 300_000

/** HMAC-SHA256 of the body in hex, and whatever differs from it. */
export const HMAC = { prefix: '', algorithm: 'sha256', encoding: 'hex', signed: '{body}' } as const

/** A signature in a header. */
export function hmac(header: string, how: Partial<Proof> = {}): Proof {
  return { ...HMAC, ...how, place: header }
}

/** @see https://docs.github.com/webhooks/using-webhooks/validating-webhook-deliveries */
export const HUB_PROOF: Proof = hmac('x-hub-signature-256', { prefix: 'sha256=' })

/** The secret itself, at any location. */
export function token(place: ValueLocation, prefix = ''): Proof {
  return { ...HMAC, place, prefix, algorithm: 'token' }
}

/** HTTP Basic. */
export const BASIC: Proof = { ...token('authorization', 'Basic '), encoding: 'base64' }

/** A token that a key made (JWT). */
export function jwt(place: ValueLocation, rules: JwtRules, prefix = ''): Proof {
  return { ...HMAC, place, prefix, algorithm: 'jwt', jwt: rules }
}

/** @param tolerance in milliseconds; 5 minutes for senders that name none */
export function time(place: ValueLocation, unit: TimeUnit = 's', tolerance = FIVE_MINUTES): SignedTime {
  return { place, unit, tolerance }
}

/** Pairs in one header, `t=1492774577,v1=6ffbb59b…`, which sign the time, a dot and the body. */
export function pairs(header: string, how: Partial<Proof> = {}): Proof {
  return hmac(header, {
    separator: ',',
    prefix: 'v1=',
    signed: '{timestamp}.{body}',
    time: time(`${header}#t`),
    ...how,
  })
}

/** A signature with a key pair in a header. */
export function signature(
  header: string,
  algorithm: KeyAlgorithm,
  how: Partial<Proof> & Required<Pick<Proof, 'keyForm'>>,
): Proof {
  return { ...HMAC, ...how, place: header, algorithm }
}

/** @see https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md */
export function standard(name: 'webhook' | 'svix'): Proof {
  return hmac(`${name}-signature`, {
    separator: ' ',
    prefix: 'v1,',
    encoding: 'base64',
    signed: '{id}.{timestamp}.{body}',
    id: `${name}-id`,
    time: time(`${name}-timestamp`),
    key: 'base64',
  })
}

/**
 * The proofs of both kinds of Standard Webhooks: with a secret, and with the public key of the sender, `whpk_…`, which is
 * no secret.
 * @see https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md#signature-scheme
 */
export function standardWithKeys(name: 'webhook' | 'svix'): readonly Proof[] {
  const { key: _, ...signed } = standard(name)
  return [
    { ...standard(name), secretForm: /^(?!whpk_)/ },
    {
      ...signed,
      algorithm: 'ed25519',
      prefix: 'v1a,',
      keyForm: 'whpk',
      secretForm: /^whpk_/,
    },
  ]
}

/** Texts of a row about its sender. */
type Words = 'title' | 'page' | 'secret' | 'secretLike' | 'agent'

/** The scheme of a row, with the defaults of omitted fields. */
export function rowToScheme({
  agent = 'webhook-relay',
  ...row
}: Omit<SenderRow, Words> & Partial<Pick<SenderRow, 'agent'>>): WebhookScheme {
  const { event, id = [] } = row
  const headers = [event, id].map((places) => places.find((place) => !isInBody(place)))
  return {
    action: [],
    repo: [],
    number: [],
    ref: [],
    formSignature: 'body',
    content: 'json',
    style: () => 'compact',
    ...row,
    id,
    headers: (eventName, deliveryId) => ({
      'Content-Type': 'application/json',
      'User-Agent': agent,
      ...(headers[0] !== undefined && { [canonicalHeaderName(headers[0])]: eventName }),
      ...(headers[1] !== undefined && { [canonicalHeaderName(headers[1])]: deliveryId }),
    }),
  }
}
