// Tokens that prove a request: JWTs (RFC 7519), by the rules of a scheme.
import { createHmac, hash, randomUUID } from 'node:crypto'
import type { Secret } from '../base/secret.js'
import type { WebhookSecrets } from '../base/settings.js'
import { type KeyAlgorithm, type KeyKind, kindOfKey, signWith } from './algorithms.js'
import { OWN_KID, readKeyPair } from './keys.js'
import { fieldsOf, parseJson } from '../json/parse.js'
import { decodeJwt } from './token-body.js'

/** Algorithms of JWTs (RFC 7518 section 3.1, RFC 8037) that relay takes. `none` is never accepted. */
export const JWT_ALGORITHMS = ['HS256', 'HS384', 'HS512', 'RS256', 'ES256', 'EdDSA'] as const
export type JwtAlgorithm = (typeof JWT_ALGORITHMS)[number]

/** Rules for a token. */
export interface JwtRules {
  readonly algorithm: JwtAlgorithm
  /** Address of the sender's keys (RFC 7517). Default: the secret is the key. */
  readonly keySet?: string
  /**
   * Claims that it has, with the value or one of several. `{secret}` is the secret of the source, which is not
   * confidential in that case, and `{url}` the address that the sender was given.
   */
  readonly claims?: Readonly<Record<string, string | boolean | readonly string[]>>
  /** True if the token is the body, whose claims it covers. */
  readonly isBody?: true
  /**
   * Claim with the hash of method, path and query, as Atlassian makes it. The path may begin anywhere in that of the
   * address: only the sender knows which part is the base address of the app.
   */
  readonly requestHash?: string
  /** Claim with the SHA-256 of the body. Without one, a token in another place proves nothing of the body. */
  readonly digest?: { readonly claim: string; readonly encoding: 'hex' | 'base64' | 'base64url' }
  /**
   * Milliseconds from `iat` for which it is accepted. Default: until `exp`, which a token must have that covers no
   * body.
   */
  readonly maxAge?: number
}

/** Clock difference that is tolerated, in milliseconds. */
export const JWT_LEEWAY = 60_000
/** Time for which relay's own tokens are accepted, in milliseconds. */
const LIFETIME = 300_000
/** Longest token in characters. That of Google Pub/Sub has about 800. */
const MAX_TOKEN = 8192

/** Source of a regular expression for one token in its compact form (RFC 7515 section 7.1). */
export const JWT_PATTERN = `(?=[\\w.-]{1,${MAX_TOKEN}}$)[\\w-]+\\.[\\w-]+\\.[\\w-]*`
/** The same for one that is the body, whose length has a limit of its own. */
export const BODY_PATTERN = String.raw`[\w-]+\.[\w-]+\.[\w-]*`

/** Kind of the key pair behind an algorithm. Undefined: a secret signs. */
export function kindOfJwt(algorithm: JwtAlgorithm): KeyKind | undefined {
  const own = keyAlgorithm(algorithm)
  return own && kindOfKey(own)
}

function keyAlgorithm(algorithm: JwtAlgorithm): KeyAlgorithm | undefined {
  if (algorithm === 'RS256') return 'rsa-sha256'
  if (algorithm === 'ES256') return 'ecdsa-p256-raw'
  return algorithm === 'EdDSA' ? 'ed25519' : undefined
}

/** The request that a token proves. */
export interface JwtSubject {
  /** The body that it covers. */
  readonly body: Uint8Array
  readonly url: string | undefined
  /** Without its question mark. */
  readonly query: string | undefined
  readonly secret: Secret
}

/** Values that a claim may have. */
export function expectedValues(
  value: string | boolean | readonly string[],
  { url, secret }: Pick<JwtSubject, 'url' | 'secret'>,
): readonly unknown[] {
  return [value].flat().map((each) => (each === '{url}' ? url : each === '{secret}' ? secret.reveal() : each))
}

/** Digest of a body, as a claim has it. */
export function bodyClaim(body: Uint8Array, { encoding }: NonNullable<JwtRules['digest']>): string {
  return hash('sha256', body, encoding)
}

/** Explains why the time of a token is not accepted at `now`. Undefined if it is. */
export function jwtStaleness(
  token: string,
  { maxAge, digest, isBody }: JwtRules,
  now: number,
): string | undefined {
  const { claims = {} } = decodeJwt(token) ?? {}
  const at = (name: string): number | undefined => {
    const { [name]: value } = claims
    return typeof value === 'number' ? value * 1000 : undefined
  }
  const [iat, exp, nbf] = [at('iat'), at('exp'), at('nbf')]
  const by = (ms: number): string => `${Math.ceil(ms / 1000)} s`
  if (exp !== undefined && now > exp + JWT_LEEWAY)
    return `its token expired (exp) ${by(now - exp)} ago: is the clock right, or was it sent again?`
  const begin = Math.max(nbf ?? 0, maxAge === undefined ? 0 : (iat ?? 0))
  if (begin - now > JWT_LEEWAY)
    return `its token is for ${by(begin - now)} later (nbf, iat): is the clock right?`
  if (maxAge === undefined)
    return exp === undefined && !digest && !isBody ? 'its token has no end (exp)' : undefined
  if (iat === undefined) return 'its token does not say when it was made (iat)'
  if (now - iat <= maxAge) return undefined
  return `its token was made (iat) ${by(now - iat)} ago, and may be ${by(maxAge)} old: is the clock right, or was it sent again?`
}

/**
 * Hashes of method, path and query, the longest path first. Empty if the address is unknown.
 * @see https://developer.atlassian.com/cloud/jira/platform/understanding-jwt-for-connect-apps/#qsh
 */
export function requestHashes(url: string | undefined, query: string | undefined): readonly string[] {
  if (url === undefined) return []
  const steps = new URL(url).pathname.replace(/\/+$/, '').split('/').slice(1)
  const values = new Map<string, string[]>()
  for (const [name, value] of new URLSearchParams(query))
    if (name !== 'jwt') values.set(name, [...(values.get(name) ?? []), value])
  const parameters = [...values.keys()]
    .toSorted()
    .map((name) => `${percent(name)}=${(values.get(name) ?? []).toSorted().map(percent).join(',')}`)
  return Array.from({ length: steps.length + 1 }, (_, from) => {
    const path = `/${steps.slice(from).join('/')}`.replaceAll('&', '%26')
    return hash('sha256', `POST&${path}&${parameters.join('&')}`, 'hex')
  })
}

/** Escapes all but the unreserved characters (RFC 3986 section 2.3). */
function percent(text: string): string {
  return encodeURIComponent(text).replaceAll(
    /[!'()*]/g,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  )
}

/**
 * Makes a token. Undefined if relay has no key of its own to sign it.
 * @param known claims of the token that the delivery came with, but for their times
 */
export function makeJwt(
  rules: JwtRules,
  { current, own }: WebhookSecrets,
  { body, url, query }: Omit<JwtSubject, 'secret'>,
  now: number,
  known: Readonly<Record<string, unknown>> = {},
): string | undefined {
  const { algorithm, claims = {}, digest, isBody = false, requestHash } = rules
  const made = Object.entries(claims).map(([name, value]): [string, unknown] => {
    const [first] = expectedValues(value, { url, secret: current })
    return [name, first]
  })
  const iat = Math.floor(now / 1000)
  const [hashOf] = requestHash === undefined ? [] : requestHashes(url, query)
  const { nbf: _, ...others } = known
  const payload = {
    ...(requestHash !== undefined && hashOf !== undefined && { [requestHash]: hashOf }),
    ...others,
    ...(isBody && claimsOf(body)),
    ...Object.fromEntries(made),
    ...(digest && { [digest.claim]: bodyClaim(body, digest) }),
    iat,
    exp: iat + LIFETIME / 1000,
    ...(!isBody && { jti: randomUUID() }),
  }
  const ofKey = keyAlgorithm(algorithm)
  const header = { alg: algorithm, typ: 'JWT', ...(ofKey && { kid: OWN_KID }) }
  const text = [header, payload]
    .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
    .join('.')
  if (!ofKey) {
    const digestOf = createHmac(algorithm.replace('HS', 'sha'), current.reveal()).update(text)
    return `${text}.${digestOf.digest('base64url')}`
  }
  if (!own) return undefined
  return `${text}.${signWith(readKeyPair(own).privateKey, Buffer.from(text), ofKey).toString('base64url')}`
}

/** The claims of a body that is a token, or is to become one. */
function claimsOf(body: Uint8Array): Readonly<Record<string, unknown>> {
  const text = Buffer.from(body).toString()
  const { claims } = decodeJwt(text) ?? {}
  if (claims) return claims
  try {
    return fieldsOf(parseJson(text))
  } catch {
    return {}
  }
}
