import { RelayError } from '../base/errors.js'
import { Secret } from '../base/secret.js'
import { ON_DUPLICATE, type WebhookSecrets } from '../base/settings.js'
import { parseDuration } from '../base/time.js'
import type { OnDuplicate } from '../journal/types.js'
import { indexHeaders, isConnectionHeader } from '../http/headers.js'
import { isObject } from '../json/parse.js'
import { ALGORITHMS, KEY_ALGORITHMS, usesKeys } from './algorithms.js'
import { needsSecret } from './handshake.js'
import { JWT_ALGORITHMS, type JwtRules, kindOfJwt } from './jwt.js'
import { isKeyAddress } from './key-address.js'
import { HANDSHAKE_NAMES, handshakesOf } from './handshakes.js'
import { KEY_FORMS, makeKeyPair, readKeyPair, writePublicKey } from './keys.js'
import { signRequest } from './making.js'
import { staleness } from './proof.js'
import { signableOf, verifySignature } from './proving.js'
import {
  ENCODINGS,
  headerOf,
  isInBody,
  isInPath,
  type Proof,
  type Separator,
  stepsOf,
  type ValueLocation,
  valueAt,
  type WebhookScheme,
} from './scheme.js'
import { isSecretHeader } from './table.js'
import { BASIC, jwt, rowToScheme, type SenderRow, token } from './table/row.js'
import { ambiguity, PARTS, piecesOf, placeIn } from './template.js'
import { TIME_UNITS, timeText } from './time.js'

/** Schemes that the user defines with the text after the name: `hmac header=X-Signature prefix=sha256=`. */
export const CUSTOM_SCHEMES = ['hmac', 'ed25519', 'ecdsa', 'rsa', 'jwt', 'token', 'basic', 'none'] as const

/** Settings of a user's scheme. */
type Custom = Omit<SenderRow, 'title' | 'page' | 'secret'>

/**
 * Parses a scheme that the user defines: `hmac`, `ed25519`, `ecdsa`, `rsa`, `jwt`, `token`, `basic` or `none` with
 * parts `key=value`. Returns undefined for another name.
 * @throws RelayError `settings` that names a missing, unknown or malformed part
 */
export function parseCustom(name: string, words: readonly string[]): WebhookScheme | undefined {
  return CUSTOM_SCHEMES.some((each) => each === name) ? customScheme(name, readParts(name, words)) : undefined
}

/** Options for a source of any scheme. */
type Choices = Pick<WebhookScheme, 'digestWindow' | 'onDuplicate'>

/** Window of `id=digest` alone: senders that repeat a request do so within minutes, mostly. */
const DIGEST_WINDOW = 600_000
const RULES: readonly OnDuplicate[] = ON_DUPLICATE

/**
 * Adds to the scheme of a named sender what a user can choose: `id=digest:10m on-duplicate=always`, and `url=` if it
 * signs its address.
 * @throws RelayError `settings` for any other part
 */
export function withChoices<Scheme extends WebhookScheme>(
  scheme: Scheme,
  name: string,
  words: readonly string[],
): Scheme {
  if (words.some((word) => !/^(?:on-duplicate=|url=|aud=|id=digest(?::|$))/.test(word)))
    throw invalid(name, 'takes no parts but id=digest, on-duplicate= and, if it signs its address, url=')
  const parts = readParts(name, words)
  const { url, aud } = parts
  if (aud !== undefined) {
    const all = scheme.proofs.map((proof) => withAudience(proof, aud))
    if (all.every((proof, i) => proof === scheme.proofs[i]))
      throw invalid(name, 'has no token for an audience: leave aud= out')
    return { ...scheme, ...choices(name, parts), proofs: all }
  }
  if (url === undefined) return { ...scheme, ...choices(name, parts) }
  if (!scheme.proofs.some(signsAddress)) throw invalid(name, 'signs no address: leave url= out')
  const proofs = scheme.proofs.map((proof) => (signsAddress(proof) ? { ...proof, url } : proof))
  return { ...scheme, ...choices(name, parts), proofs }
}

function withAudience(proof: Proof, aud: string): Proof {
  const { jwt } = proof
  return jwt?.claims?.['aud'] === undefined
    ? proof
    : { ...proof, jwt: { ...jwt, claims: { ...jwt.claims, aud } } }
}

function signsAddress({ signed }: Proof): boolean {
  return /\{(?:url|path)\}/.test(signed)
}

function isDigest(id: string | undefined): boolean {
  return id !== undefined && /^digest(?::|$)/.test(id)
}

function choices(name: string, { id = '', 'on-duplicate': rule }: SchemeParts): Choices {
  const onDuplicate = RULES.find((each) => each === rule)
  const [, duration] = id.split(':')
  const window = duration === undefined ? DIGEST_WINDOW : parseDuration(duration)
  if (isDigest(id) && !window) throw invalid(name, 'needs id= with digest:<duration>, such as digest:10m')
  return {
    ...(isDigest(id) && window !== undefined && { digestWindow: window }),
    ...(onDuplicate && { onDuplicate }),
  }
}

const HEADER = /^[\w-]{1,64}$/
const PLACE = /^(?:[\w-]{1,64}(?:#\w{1,32})?|\$(?:\.[\w-]{1,64}){1,8})$/
const placeLike = (member: string) =>
  [PLACE, `a header's name, or a member of the JSON such as ${member}`] as const
const listed = (names: readonly string[]): string => names.join(', ').replace(/, ([^,]*)$/, ' or $1')
const oneOf = (names: readonly string[]) => [new RegExp(`^(?:${names.join('|')})$`), listed(names)] as const
const SEPARATORS: Readonly<Record<string, Separator>> = { ',': ',', ';': ';', '&': '&', space: ' ' }
const MEMBER = String.raw`\$(?:\.[\w-]{1,64}){1,8}`
const PARAMETER = String.raw`\?[\w.-]{1,64}`
/** Syntax of a scheme's parts and its description, in the order in which a message lists them. */
const FORMS = {
  header: [HEADER, "a header's name"],
  at: [
    new RegExp(`^(?:\\$|${MEMBER}|${PARAMETER}|/[1-9])$`),
    'a member of the body such as $.token, a parameter of the query such as ?token, a segment of the path behind the address such as /1, or $ for a body that is a token',
  ],
  each: [new RegExp(`^${MEMBER}$`), 'a list in the body whose members are signed, such as $.items'],
  prefix: [/^[\x21-\x7e]{0,64}$/, 'at most 64 visible characters'],
  separator: oneOf(Object.keys(SEPARATORS)),
  encoding: oneOf(ENCODINGS),
  algorithm: oneOf([...ALGORITHMS, ...JWT_ALGORITHMS]),
  key: [
    new RegExp(`^(?:text|${KEY_FORMS.join('|')})$`),
    'text, base64 or hex, or for a public key spki, whpk, pem, jwk or jwks',
  ],
  format: oneOf(['der', 'raw']),
  keys: [/^https?:\/\/[^\s#]{1,2000}$/, "the https address of the sender's key set"],
  claim: [/^[\w-]{1,64}$/, 'the name of a claim, such as email'],
  'body-claim': [/^[\w-]{1,64}$/, 'the name of the claim with the SHA-256 of the body'],
  iss: [/^\S{1,200}$/, 'the issuer of the tokens'],
  aud: [/^\S{1,2000}$/, 'the audience of the tokens, or {url} for the address of the source'],
  'key-hash': oneOf(['sha1']),
  'key-name': [
    /^[!-/:-@[-`{-~]{1,8}$/,
    'what stands between the name of the key and the signature, such as |',
  ],
  signed: [
    new RegExp(
      `^(?:[!-z|~]|${PARTS.map((part) => `\\{${part.slice(1, -1)}\\}`).join('|')}|\\{(?:${MEMBER}|${PARAMETER})\\}){1,200}$`,
    ),
    `a text of ${PARTS.join(', ')}, and members and parameters such as {$.amount.value} and {?id}`,
  ],
  headers: [HEADER, 'the name of the header that lists those of {headers}'],
  digest: [new RegExp(`^${PARAMETER}$`), 'a parameter with the SHA-256 of the body, such as ?bodySHA256'],
  fields: [/^k[^a-z\s]{0,8}v[^a-z\s]{0,8}$/i, 'k for the name and v for the value, such as kv or k=v&'],
  url: [
    /^https?:\/\/[^\s#]{1,2000}$/,
    'the address that the sender was given, such as https://example.com/webhook/shop',
  ],
  event: placeLike('$.type'),
  id: [new RegExp(`${PLACE.source}|^digest:.*$`), `digest, digest:<duration>, ${placeLike('$.id')[1]}`],
  time: placeLike('$.time'),
  unit: oneOf(TIME_UNITS),
  tolerance: [/./, 'a duration such as 5m, or none'],
  'on-duplicate': [/^(?:if-failed|always|never)$/, 'if-failed, always or never'],
  handshake: oneOf(HANDSHAKE_NAMES),
} as const satisfies Record<string, readonly [RegExp, string]>
type SchemeParts = Partial<Readonly<Record<keyof typeof FORMS, string>>>
const NAMES_OF_HEADERS = new Set(['header', 'headers', 'event', 'id', 'time'])

function readParts(name: string, parts: readonly string[]): SchemeParts {
  const read: Record<string, string> = Object.create(null)
  for (const part of parts) {
    const [, key = '', value = ''] = /^([^=]*)=(.*)$/s.exec(part) ?? []
    const [form, what] = Object.entries(FORMS).find(([each]) => each === key)?.[1] ?? []
    // The rest of the part may be a misplaced secret.
    const [wrong = ''] = /^[a-z-]{1,16}=/i.exec(part) ?? []
    if (!form) throw invalid(name, `has no part '${wrong}…': write ${Object.keys(FORMS).join('=, ')}=`)
    if (!form.test(value)) throw invalid(name, `needs ${key}= with ${what}`)
    if (key in read) throw invalid(name, `has ${key}= twice: leave one out`)
    const isHeader = NAMES_OF_HEADERS.has(key) && !isInBody(value) && !(key === 'id' && isDigest(value))
    read[key] = isHeader ? value.toLowerCase() : value
  }
  for (const [key, value] of Object.entries(read))
    if (NAMES_OF_HEADERS.has(key) && headerOf(value) !== undefined && !(key === 'id' && isDigest(value)))
      checkHeader(name, key, value, read['prefix'])
  const secret = read['header'] ?? read['at']
  const isShown = (key: string): boolean => secret !== undefined && read[key]?.split('#')[0] === secret
  const shown = ['event', 'id'].find((key) => name === 'token' && isShown(key))
  if (shown !== undefined)
    throw invalid(
      name,
      `cannot have ${shown}=${secret}: ${read['at'] === undefined ? 'that header' : 'it'} holds the secret, which logs and commands would show. Leave ${shown}= out, or name another ${read['at'] === undefined ? 'header' : 'place'}`,
    )
  return read
}

/**
 * Refuses a header that relay does not store and forward, because the delivery could not be verified later, neither
 * here nor by its receiver. The header of a token may be a credential, which relay writes again from the secret.
 * @throws RelayError `settings`
 */
function checkHeader(name: string, key: string, value: string, prefix = ''): void {
  const [header = ''] = value.split('#')
  const isToken = (name === 'token' || name === 'jwt') && key === 'header'
  // A signature with a prefix word of its own can be distinguished from a credential.
  const isSignature =
    name === 'hmac' && key === 'header' && header === 'authorization' && /^[a-z][\w-]+$/i.test(prefix)
  if (!isConnectionHeader(header) && (isToken || isSignature || !isSecretHeader(header))) return
  throw invalid(
    name,
    `cannot have ${key}=${header}: relay does not store and forward that header, so nothing could verify the delivery later. Name another header that the sender has, or have it send one of its own, such as X-Signature`,
  )
}

/**
 * Creates the scheme that a user has defined. @throws RelayError `settings` if it could prove nothing, or is ambiguous
 */
function customScheme(name: string, parts: SchemeParts): WebhookScheme {
  const row = customSpec(name, parts)
  const [unclear] = row.proofs.flatMap(({ signed, time }) => ambiguity(signed, time?.unit ?? 's') ?? [])
  if (unclear !== undefined) throw invalid(name, unclear)
  const scheme = rowToScheme(row)
  if (isConsistent(scheme)) return scheme
  // A part is at fault if replacing it makes the scheme work.
  const isAtFault = (key: 'prefix' | (typeof PLACES)[number]): boolean => {
    const other = key === 'prefix' ? 'v1=' : isInBody(parts[key] ?? '') ? `$.own-${key}` : `x-own-${key}`
    const changed = customSpec(name, { ...parts, [key]: other })
    return isConsistent(rowToScheme(changed))
  }
  const given = PLACES.filter((key) => parts[key] !== undefined)
  const faulty = [...given, 'prefix' as const].filter(isAtFault)
  const shown = (faulty.length > 0 ? faulty : given).map((key) => `${key}=${parts[key] ?? ''}`)
  throw invalid(name, `could not prove what it signs: change ${shown.join(' or ')}. ${OF_PLACES}`)
}

const PLACES = ['event', 'id', 'time'] as const
const OF_PLACES =
  'Each of event=, id= and time= needs a header or a member of the JSON of its own. Only the time may be a pair in a header, next to the signature, as in header=X-Signature prefix=v1= time=X-Signature#t'

/** Sample delivery for checking a scheme. Its id is like those that relay makes. */
const TRIAL = {
  secret: new Secret('name:trial'),
  event: 'event',
  id: '0b989ba4-242f-11e5-81e1-c7b6966d2516',
  now: 1_767_225_600_000,
} as const

/** The scheme with a key pair that is generated fast, and its secrets. The choice of algorithm has no effect here. */
function trialOf(scheme: WebhookScheme): {
  readonly scheme: WebhookScheme
  readonly secrets: WebhookSecrets
} {
  if (!scheme.proofs.some(({ algorithm, jwt: rules }) => rules !== undefined || usesKeys(algorithm)))
    return { scheme, secrets: { current: TRIAL.secret } }
  const proofs = scheme.proofs.map((proof) =>
    proof.jwt
      ? { ...proof, jwt: { ...proof.jwt, algorithm: 'EdDSA' as const } }
      : { ...proof, algorithm: 'ed25519' as const },
  )
  const own = makeKeyPair('Ed25519')
  const current = new Secret(writePublicKey(readKeyPair(own).publicKey, 'pem'))
  return { scheme: { ...scheme, proofs }, secrets: { current, own } }
}

/** True if a delivery that relay signs with a scheme is proved by it, and has its event and id. */
function isConsistent(given: WebhookScheme): boolean {
  const { event, id, now } = TRIAL
  const { scheme, secrets } = trialOf(given)
  const { proofs, event: eventPlaces, id: idPlaces } = scheme
  const payload: Record<string, unknown> = Object.create(null)
  const put = (place: ValueLocation, value: unknown): void => {
    if (isInBody(place) && place !== '$') putMember(payload, stepsOf(place), value)
  }
  for (const place of eventPlaces) put(place, event)
  for (const place of idPlaces) put(place, id)
  for (const { time, signed, each, place } of proofs) {
    const inBody = [place, ...piecesOf(signed).flatMap((piece) => placeIn(piece) ?? [])].filter(isInBody)
    const known = new Set([...eventPlaces, ...idPlaces, ...(time ? [time.place] : [])])
    if (each === undefined) for (const one of inBody) if (!known.has(one)) put(one, '0')
    if (each !== undefined) {
      const member: Record<string, unknown> = Object.create(null)
      for (const one of inBody) putMember(member, stepsOf(one), '0')
      put(each, [member])
    }
    if (time)
      put(time.place, time.unit === 'rfc3339' ? timeText(now, time.unit) : Number(timeText(now, time.unit)))
  }
  const isForm = proofs.some(({ signed }) => signed.includes('{fields}'))
  if (isForm) payload['field'] = 'value'
  const body = Buffer.from(isForm ? formOf(payload) : JSON.stringify(payload))
  const [url] = proofs.flatMap((proof) => proof.url ?? [])
  const query = url === undefined ? undefined : new URL(url).search.slice(1) || undefined
  const request = {
    headers: Object.entries(scheme.headers(event, id)),
    body,
    query,
    payloadUrl: 'https://relay.example/webhook/trial',
  }
  const kind = { form: isForm, style: scheme.style(event) }
  const signed = signRequest(request, secrets, now, kind, scheme)
  const received = { ...signed, lines: indexHeaders(signed.headers) }
  const signable = signableOf(received, scheme)
  const read = signable?.payload?.()
  const found = verifySignature(received, { scheme, secrets: { current: secrets.current } })
  const isProved = (proof: Proof): boolean =>
    found?.proof === proof && staleness(proof, { lines: received.lines, payload: read }, now) === undefined
  const holds = (places: readonly ValueLocation[], value: string): boolean =>
    places.every((place) => valueAt(place, received.lines, read) === value)
  // A token is proved later, and its place cannot be another's.
  return (
    proofs.every((proof) => proof.jwt !== undefined || isProved(proof)) &&
    holds(eventPlaces, event) &&
    holds(idPlaces, id)
  )
}

function formOf(payload: Readonly<Record<string, unknown>>): string {
  return new URLSearchParams(
    Object.entries(payload).map(([name, value]): [string, string] => [name, String(value)]),
  ).toString()
}

function putMember(
  target: Record<string, unknown>,
  [name = '', ...rest]: readonly string[],
  value: unknown,
): void {
  if (rest.length === 0) target[name] = value
  else {
    const inner: Record<string, unknown> = Object.assign(
      Object.create(null),
      isObject(target[name]) && target[name],
    )
    target[name] = inner
    putMember(inner, rest, value)
  }
}

/** Converts the parts of a user's scheme to a description. */
function customSpec(name: string, parts: SchemeParts): Custom {
  const { header, prefix = '', event } = parts
  const id = isDigest(parts.id) ? undefined : parts.id
  const handshakes = handshakesOf(parts.handshake)
  const places = {
    event: event ? [event] : [],
    id: id ? [id] : [],
    content: 'any',
    handshakes,
    ...choices(name, parts),
  } as const
  if (name === 'none') {
    if (handshakes.some(needsSecret))
      throw invalid(name, `has no secret, which handshake=${parts.handshake} needs`)
    return { ...places, proofs: [] }
  }
  if (name === 'basic')
    return {
      ...places,
      proofs: [BASIC],
      secretHint: 'it is the user and the password, with a colon between: user:password',
    }
  if (header !== undefined && parts.at !== undefined)
    throw invalid(name, 'has header= and at=: leave one out')
  const place = header ?? parts.at
  if (place === undefined) throw invalid(name, 'needs the name of the header, as header=X-Signature')
  if (name === 'token') {
    // `prefix=Bearer` stands before the token with a space.
    const before = /^\w+$/.test(prefix) ? `${prefix} ` : prefix
    return { ...places, proofs: [token(place, before)] }
  }
  if (name === 'jwt') return { ...places, proofs: [customToken(name, place, parts)] }
  if (place === '$') throw invalid(name, 'cannot have at=$: only a token of jwt can be the body itself')
  return { ...places, proofs: [customSignature(name, place, parts)] }
}

/** Algorithm of a scheme, and how its keys are written. @throws RelayError `settings` for one that it does not have */
function customAlgorithm(name: string, parts: SchemeParts): Pick<Proof, 'algorithm' | 'key' | 'keyForm'> {
  const { algorithm, format, key } = parts
  const keyForm = KEY_FORMS.find((each) => each === key)
  if (name !== 'ecdsa' && format !== undefined) throw invalid(name, 'has no part format=: leave it out')
  if (name === 'hmac') {
    if (key !== undefined && !['text', 'base64', 'hex'].includes(key))
      throw invalid(name, 'needs key= with text, base64 or hex')
    return {
      algorithm: ALGORITHMS.find((each) => each === algorithm) ?? 'sha256',
      ...((key === 'base64' || key === 'hex') && { key }),
      ...(parts['key-hash'] !== undefined && { key: 'sha1' as const }),
    }
  }
  if (key === 'text') throw invalid(name, `needs key= with ${listed(KEY_FORMS)}`)
  const whole = `${name}-${algorithm ?? 'sha256'}`
  const ofName = name === 'ecdsa' ? (format === 'raw' ? 'ecdsa-p256-raw' : 'ecdsa-p256') : name
  const found = KEY_ALGORITHMS.find((each) => each === (name === 'rsa' ? whole : ofName))
  const isOther = name !== 'rsa' && algorithm !== undefined && algorithm !== 'sha256'
  if (!found || isOther || (name === 'ed25519' && algorithm !== undefined))
    throw invalid(
      name,
      name === 'rsa'
        ? 'needs algorithm= with sha256, sha1 or sha512'
        : 'has one algorithm: leave algorithm= out',
    )
  return { algorithm: found, ...(keyForm && { keyForm }) }
}

/** A proof by a JWT. @throws RelayError `settings` for parts that do not belong together */
function customToken(name: string, place: ValueLocation, parts: SchemeParts): Proof {
  const { prefix = '', keys, claim, 'body-claim': digest, iss, aud, key } = parts
  const usual = keys === undefined ? 'HS256' : 'RS256'
  const algorithm = JWT_ALGORITHMS.find((each) => each === (parts.algorithm ?? usual))
  if (!algorithm) throw invalid(name, `needs algorithm= with ${listed(JWT_ALGORITHMS)}`)
  if (keys !== undefined && !isKeyAddress(keys)) throw invalid(name, `needs keys= with ${FORMS.keys[1]}`)
  if (keys !== undefined && kindOfJwt(algorithm) === undefined)
    throw invalid(name, `signs with a secret: with keys=, choose ${listed(JWT_ALGORITHMS.filter(kindOfJwt))}`)
  if (keys === undefined && claim !== undefined)
    throw invalid(name, 'needs keys= for claim=: without, the secret is the key')
  if (place === '$' && (digest !== undefined || prefix !== ''))
    throw invalid(name, 'is the body itself with at=$: leave body-claim= and prefix= out')
  const rules: JwtRules = {
    algorithm,
    ...(keys !== undefined && { keySet: keys }),
    claims: {
      ...(iss !== undefined && { iss }),
      ...(aud !== undefined && { aud }),
      ...(keys !== undefined && { [claim ?? 'aud']: '{secret}' }),
    },
    ...(place === '$' && { isBody: true as const }),
    ...(digest !== undefined && { digest: { claim: digest, encoding: hashEncoding(parts.encoding) } }),
  }
  const keyForm = KEY_FORMS.find((each) => each === (key ?? (keys === undefined ? undefined : 'jwks')))
  return {
    ...jwt(place, rules, /^\w+$/.test(prefix) ? `${prefix} ` : prefix),
    ...(keyForm && { keyForm }),
  }
}

function hashEncoding(encoding: string | undefined): NonNullable<JwtRules['digest']>['encoding'] {
  return encoding === 'base64' || encoding === 'base64url' ? encoding : 'hex'
}

function customSignature(name: string, place: ValueLocation, parts: SchemeParts): Proof {
  const { prefix = '', encoding, time, tolerance = '5m', url, fields = '', digest, each } = parts
  const id = isDigest(parts.id) ? undefined : parts.id
  const isApart = time !== undefined && headerOf(time) === undefined && parts.signed === undefined
  const signed = parts.signed ?? (time === undefined || isApart ? '{body}' : '{timestamp}.{body}')
  const within = tolerance === 'none' ? Infinity : parseDuration(tolerance)
  if (within === undefined) throw invalid(name, `needs tolerance= with ${FORMS.tolerance[1]}`)
  checkSigned(name, place, signed, parts)
  const [, afterName = '', between = ''] = /^k([^v]*)v(.*)$/i.exec(fields) ?? []
  const separator =
    parts.separator === undefined ? usualSeparator(prefix, place, time) : SEPARATORS[parts.separator]
  return {
    place,
    // `prefix=HMAC` stands before the signature with a space, as in every Authorization.
    prefix: place === 'authorization' ? `${prefix} ` : prefix,
    ...(separator && { separator }),
    ...customAlgorithm(name, parts),
    encoding: ENCODINGS.find((one) => one === encoding) ?? 'hex',
    ...(parts['key-name'] !== undefined && { keyName: parts['key-name'] }),
    signed,
    ...(each !== undefined && { each }),
    ...(digest !== undefined && { digest }),
    ...(parts.headers !== undefined && { headerList: parts.headers }),
    ...(fields !== '' && { fields: { afterName, between } }),
    ...(url !== undefined && { url }),
    ...(id !== undefined && signed.includes('{id}') && { id }),
    ...(time !== undefined && {
      time: { place: time, unit: TIME_UNITS.find((one) => one === parts.unit) ?? 's', tolerance: within },
    }),
  }
}

/** @throws RelayError `settings` for a template that could prove nothing, or that needs a missing part of the scheme */
function checkSigned(name: string, place: ValueLocation, signed: string, parts: SchemeParts): void {
  const { time, digest, each } = parts
  const id = isDigest(parts.id) ? undefined : parts.id
  const members = piecesOf(signed).some((piece) => placeIn(piece)?.startsWith('$') === true)
  if (isInBody(place) && /\{(?:body|body-sha256|fields)\}/.test(signed))
    throw invalid(
      name,
      'needs a signature outside of the body that it covers, as header=X-Signature; or signed= with the members that it covers, as {$.id}',
    )
  if (!/\{(?:body|body-sha256|fields)\}/.test(signed) && !members && digest === undefined)
    throw invalid(name, 'needs {body} in signed=')
  if (each !== undefined && (!isInBody(place) || !members))
    throw invalid(name, 'needs at= and signed= with members of the list that each= names, such as $.id')
  if (each !== undefined && time !== undefined) throw invalid(name, 'has each= and time=: leave one out')
  if (digest !== undefined && !/\{(?:url|query)\}/.test(signed))
    throw invalid(name, 'needs {url} in signed= for the digest in the query')
  if (signed.includes('{headers}') !== (parts.headers !== undefined))
    throw invalid(
      name,
      'needs headers= with the name of a header for the {headers} in signed=, and both or none',
    )
  if (signed.includes('{id}') && (id === undefined || isInBody(id)))
    throw invalid(name, 'needs id= with a header for the {id} in signed=')
  const isInText = signed.includes('{timestamp}')
  if (isInText && time === undefined)
    throw invalid(name, 'needs time= with a header for the {timestamp} in signed=')
  if (time !== undefined && isInBody(time) && isInText && signed.includes('{body}'))
    throw invalid(name, 'needs time= with a header for the {timestamp} in signed=: {body} has it already')
  if (time !== undefined && isInBody(time) && !isInText && !/\{(?:body|body-sha256)\}/.test(signed))
    throw invalid(name, 'needs {timestamp} in signed=: a time that is not signed shows nothing')
  if (time !== undefined && !isInText && !isInBody(time) && parts.headers === undefined)
    throw invalid(name, 'needs {timestamp} in signed=: a time that is not signed shows nothing')
  if (place.startsWith('?') && /\{(?:url|query)\}/.test(signed))
    throw invalid(name, 'cannot sign the query that the signature is in')
  if (isInPath(place) && signed.includes('{url}'))
    throw invalid(name, 'cannot sign the address that the signature is in')
}

/** Separator of a header that may have several signatures, or a time next to them. */
function usualSeparator(prefix: string, place: ValueLocation, time = ''): Separator | undefined {
  const isShared = time.startsWith(`${place}#`)
  if ((prefix === '' && !isShared) || place === 'authorization') return undefined
  return prefix.includes(',') ? ' ' : ','
}

function invalid(name: string, why: string): RelayError {
  return new RelayError('settings', `The scheme ${name} ${why}`)
}
