// Proof of a request by a JWT, whose signature the library `jose` verifies. Loaded when a sender has one.
import { createPublicKey } from 'node:crypto'
import { compactVerify, errors, type JWTVerifyGetKey } from 'jose'
import type { Secret } from '../base/secret.js'
import type { WebhookSecrets } from '../base/settings.js'
import type { VerifiedBy } from '../journal/types.js'
import { type Unproved, unproved } from './unproved.js'
import { bodyClaim, expectedValues, type JwtRules, type JwtSubject, kindOfJwt, requestHashes } from './jwt.js'
import { decodeJwt } from './token-body.js'
import { isPublicKey, keyDefect, OWN_KID, keyOfKind, readKeyPair } from './keys.js'
import { keySetAt } from './key-sets.js'
import { isEmptySecret } from './secrets.js'

/** The key that made the token, or the reason why no key proves the request. */
export type JwtVerdict = { readonly by: VerifiedBy } | Unproved

type Key = Uint8Array | ReturnType<typeof createPublicKey> | JWTVerifyGetKey

/**
 * Proves a request by its token: its algorithm is the scheme's, one of the keys made it, and its claims are of this
 * request. Its time is left to `jwtStaleness`.
 * @throws RelayError `unavailable` if the sender's keys cannot be fetched
 */
export async function proveJwt(
  token: string,
  rules: JwtRules,
  secrets: WebhookSecrets,
  subject: Omit<JwtSubject, 'secret'>,
): Promise<JwtVerdict> {
  const decoded = decodeJwt(token)
  if (!decoded)
    return unproved(
      'malformed_signature',
      'its token is no JWT: three parts in base64url, with JSON in the first two',
    )
  const { alg, kid } = decoded.header
  if (alg !== rules.algorithm)
    return unproved(
      'wrong_algorithm',
      `its token is signed with ${alg === 'none' ? 'nothing (alg none)' : quoted(alg)}, and this sender signs with ${rules.algorithm}: a token with another algorithm is never accepted`,
    )
  let why: Unproved | undefined
  for (const [by, secret, key] of keysOf(rules, secrets, kid)) {
    const found = typeof key === 'object' && 'valid' in key ? key : await refusalOf(token, rules, key, kid)
    why ??= found
    if (found) continue
    const defect = claimDefect(decoded.claims, rules, { ...subject, secret })
    if (defect === undefined) return { by }
    // The signature is right, so no other key explains more.
    why = defect
    break
  }
  return why ?? unproved('secret_form', 'relay has no key for this source')
}

/** The keys that may have made a token, in the order in which they are tried. An `Unproved` is the reason why a key is missing. */
function* keysOf(
  { algorithm, keySet }: JwtRules,
  { current, previous, own }: WebhookSecrets,
  kid: unknown,
): Generator<readonly [by: VerifiedBy, secret: Secret, key: Key | Unproved]> {
  const kind = kindOfJwt(algorithm)
  const isOwn = kind !== undefined && own !== undefined && kid === OWN_KID
  if (isOwn) yield ['own', current, readKeyPair(own).publicKey]
  const all = [['current', current] as const, ...(previous ? [['previous', previous] as const] : [])]
  for (const [by, secret] of all) {
    if (isEmptySecret(secret)) continue
    if (keySet !== undefined) {
      if (!isOwn) yield [by, secret, keySetAt(keySet)]
    } else if (kind) yield [by, secret, keyOfKind(secret, kind) ?? keyless(secret, kind)]
    else if (isPublicKey(secret))
      yield [
        by,
        secret,
        unproved(
          'secret_form',
          "relay's secret is a public key, with which everybody could sign: give the sender's secret",
        ),
      ]
    else yield [by, secret, Buffer.from(secret.reveal())]
  }
}

function keyless(secret: Secret, kind: NonNullable<ReturnType<typeof kindOfJwt>>): Unproved {
  return unproved(
    'secret_form',
    `relay's key is not the ${kind} public key of the sender: it is ${keyDefect(secret, kind)}`,
  )
}

/** Reason why a token is not made by a key. Undefined if it is. @throws RelayError `unavailable` as {@link keySetAt} */
async function refusalOf(
  token: string,
  { algorithm, keySet }: JwtRules,
  key: Exclude<Key, Unproved>,
  kid: unknown,
): Promise<Unproved | undefined> {
  try {
    const options = { algorithms: [algorithm] }
    if (typeof key === 'function') await compactVerify(token, key, options)
    else await compactVerify(token, key, options)
    return undefined
  } catch (error) {
    if (!(error instanceof errors.JOSEError)) throw error
    if (error instanceof errors.JWKSNoMatchingKey || error instanceof errors.JWKSMultipleMatchingKeys)
      return unproved(
        'unknown_key',
        `its token names the key ${quoted(kid)} (kid), which is not among those at ${keySet}: is it from another sender?`,
      )
    if (error instanceof errors.JWKSInvalid)
      return unproved('unknown_key', `what is published at ${keySet} is no key set`)
    return unproved(
      'wrong_secret',
      `its token is signed with another ${keySet === undefined && kindOfJwt(algorithm) === undefined ? 'secret' : 'key'}, or was changed`,
    )
  }
}

/** Reason why the claims of a proven token belong to another request. Undefined if they belong to this one. */
function claimDefect(
  claims: Readonly<Record<string, unknown>>,
  { claims: wanted = {}, digest, requestHash }: JwtRules,
  subject: JwtSubject,
): Unproved | undefined {
  for (const [name, value] of Object.entries(wanted)) {
    const all = expectedValues(value, subject)
    const given = [claims[name]].flat()
    if (given.some((each) => each !== undefined && all.includes(each))) continue
    const expected = all.map((each) =>
      each === undefined ? 'the address of the source, which relay does not know' : quoted(each),
    )
    const what = `its token is for ${name} ${quoted(claims[name])}, expected ${expected.join(' or ')}`
    return unproved(
      'wrong_claim',
      name === 'aud' ? `${what}: write the audience that you set at the sender as aud=` : what,
    )
  }
  if (
    requestHash !== undefined &&
    !requestHashes(subject.url, subject.query).some((each) => each === claims[requestHash])
  )
    return unproved(
      'wrong_claim',
      `its token is for another request (${requestHash}), not for POST ${subject.url ?? 'to the address of the source, which relay does not know'}: a token of a page of the app, or of another address, is never accepted`,
    )
  if (!digest || claims[digest.claim] === bodyClaim(subject.body, digest)) return undefined
  if (typeof claims[digest.claim] !== 'string')
    return unproved('wrong_claim', `its token does not cover the body: it has no ${digest.claim}`)
  return unproved(
    'changed_body',
    `its token is right, and covers another body (${digest.claim}): the body was changed on its way`,
  )
}

/** A value from outside, in one line of at most 100 characters. */
function quoted(value: unknown): string {
  return value === undefined ? '(none)' : JSON.stringify(value).slice(0, 100)
}
