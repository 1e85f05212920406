import { RelayError } from '../base/errors.js'
import { Secret } from '../base/secret.js'
import { parseDuration } from '../base/time.js'
import { indexHeaders, isStoredHeader, isConnectionHeader, canonicalHeaderName } from '../http/headers.js'
import { isObject } from '../json/parse.js'
import { findProof, signDelivery, staleness } from './proof.js'
import {
  ambiguity,
  isInBody,
  type ValueLocation,
  type Proof,
  type SignedTime,
  valueAt,
  type WebhookScheme,
} from './scheme.js'

const FIVE_MINUTES = 300_000
const seconds = (place: ValueLocation, tolerance = FIVE_MINUTES): SignedTime => ({
  place,
  unit: 1000,
  tolerance,
})

const HMAC = { prefix: '', algorithm: 'sha256', encoding: 'hex', signed: '{body}' } as const
/** HMAC with a version, in a header that may contain several. */
const V1 = { ...HMAC, separator: ',', prefix: 'v1=' } as const

/** Proof of a sender that also signs the time. */
function timed(how: Partial<Proof>, header: string, signed: string, time: SignedTime): Proof {
  return { ...HMAC, ...how, header, signed, time }
}

/** @see https://docs.github.com/webhooks/using-webhooks/validating-webhook-deliveries */
export const HUB_PROOF: Proof = { ...HMAC, header: 'x-hub-signature-256', prefix: 'sha256=' }

/** @see https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md */
function standard(name: 'webhook' | 'svix'): Proof {
  return {
    ...HMAC,
    header: `${name}-signature`,
    separator: ' ',
    prefix: 'v1,',
    encoding: 'base64',
    signed: '{id}.{timestamp}.{body}',
    id: `${name}-id`,
    time: seconds(`${name}-timestamp`),
    key: 'base64',
  }
}

/** Description of a sender that is not a code host. Omitted fields have the usual values: JSON, and no repository. */
interface SenderSpec
  extends
    Pick<WebhookScheme, 'proofs' | 'event'>,
    Partial<Omit<WebhookScheme, 'proofs' | 'event' | 'headers'>> {
  /** User-Agent of its requests. */
  readonly agent?: string
}

/**
 * Senders that relay knows by name. A new sender is an entry here, a section in docs/senders.md, and an entry in the
 * test of all senders.
 */
const SENDERS = {
  standard: {
    proofs: [standard('webhook'), standard('svix')],
    event: ['$.type'],
    id: ['webhook-id', 'svix-id'],
    secretHint: 'each endpoint has its own secret',
  },
  /** @see https://docs.stripe.com/webhooks#verify-manually */
  stripe: {
    proofs: [timed(V1, 'stripe-signature', '{timestamp}.{body}', seconds('stripe-signature#t'))],
    event: ['$.type'],
    id: ['$.id'],
    style: () => 'indented',
    agent: 'Stripe/1.0 (+https://stripe.com/docs/webhooks)',
    secretHint:
      'each endpoint has its own signing secret, test and live mode differ, and stripe listen prints another',
  },
  /** @see https://docs.slack.dev/authentication/verifying-requests-from-slack */
  slack: {
    proofs: [
      timed(
        { prefix: 'v0=' },
        'x-slack-signature',
        'v0:{timestamp}:{body}',
        seconds('x-slack-request-timestamp'),
      ),
    ],
    event: ['$.event.type', '$.type', '$.command'],
    id: ['$.event_id', '$.trigger_id'],
    content: 'fields',
    challenge: '$.challenge',
    // Unsigned, as Slack's own Bolt accepts it.
    check: 'ssl_check',
    agent: 'Slackbot 1.0 (+https://api.slack.com/robots)',
    secretHint: 'it is the signing secret of the app, not a token or the verification token',
  },
  /**
   * With a signing token, GitLab signs as in Standard Webhooks. @see
   * https://docs.gitlab.com/user/project/integrations/webhooks/
   */
  gitlab: {
    proofs: [
      { ...standard('webhook'), secretForm: /^whsec_/ },
      { ...HMAC, header: 'x-gitlab-token', algorithm: 'token', secretForm: /^(?!whsec_)/ },
    ],
    event: ['x-gitlab-event'],
    action: ['$.object_attributes.action'],
    // Only these ids stay the same in a repeated delivery. `X-Gitlab-Webhook-UUID` differs for each request.
    id: ['webhook-id', 'idempotency-key'],
    repo: ['$.project.path_with_namespace'],
    number: ['$.object_attributes.iid'],
    secretHint: 'each webhook has its own signing token or secret token',
  },
  /** @see https://linear.app/developers/webhooks#securing-webhooks */
  linear: {
    proofs: [
      timed({}, 'linear-signature', '{body}', { place: '$.webhookTimestamp', unit: 1, tolerance: 60_000 }),
    ],
    event: ['$.type', 'linear-event'],
    action: ['$.action'],
    id: ['linear-delivery'],
    secretHint: 'each webhook has its own signing secret, shown on its page',
  },
  /** @see https://shopify.dev/docs/apps/build/webhooks/subscribe/https */
  shopify: {
    proofs: [{ ...HMAC, header: 'x-shopify-hmac-sha256', encoding: 'base64' }],
    event: ['x-shopify-topic'],
    id: ['x-shopify-webhook-id'],
    repo: ['x-shopify-shop-domain'],
    secretHint: 'it is the client secret of the app; for webhooks made in the admin, the one shown there',
  },
  /** Also Jira. @see https://support.atlassian.com/bitbucket-cloud/docs/manage-webhooks/ */
  bitbucket: {
    proofs: [{ ...HMAC, header: 'x-hub-signature', prefix: 'sha256=' }],
    event: ['$.webhookEvent', '$.eventKey', 'x-event-key'],
    id: ['x-request-uuid', 'x-request-id', 'x-atlassian-webhook-identifier'],
    hook: 'x-hook-uuid',
    repo: ['$.repository.full_name'],
    number: ['$.pullrequest.id', '$.pullRequest.id'],
    secretHint: 'each webhook has its own secret',
  },
  /** @see https://docs.sentry.io/organization/integrations/integration-platform/webhooks/ */
  sentry: {
    proofs: [{ ...HMAC, header: 'sentry-hook-signature' }],
    event: ['sentry-hook-resource'],
    action: ['$.action'],
    id: ['request-id'],
    secretHint: 'it is the client secret of the integration, not a token',
  },
  /** @see https://developer.pagerduty.com/docs/verifying-webhook-signatures */
  pagerduty: {
    proofs: [{ ...V1, header: 'x-pagerduty-signature' }],
    event: ['$.event.event_type'],
    id: ['$.event.id'],
    secretHint: 'each subscription has its own secret, shown once when it is made',
  },
} as const satisfies Readonly<Record<string, SenderSpec>>

/** Schemes that the user defines with the text after the name: `hmac header=X-Signature prefix=sha256=`. */
const CUSTOM_SCHEMES = ['hmac', 'token', 'none'] as const

/** Names of the schemes that are not a code host's. */
export const SCHEME_NAMES: readonly string[] = [...Object.keys(SENDERS), ...CUSTOM_SCHEMES]

const ROWS: ReadonlyMap<string, SenderSpec> = new Map(Object.entries(SENDERS))

/**
 * Parses the text of a scheme: a name of the table, or `hmac`, `token` or `none` with parts `key=value`, separated by
 * spaces. Returns undefined for another name.
 * @throws RelayError `settings` that names a missing, unknown or malformed part
 */
export function senderScheme(text: string): WebhookScheme | undefined {
  const [name = '', ...words] = text.trim().split(/\s+/)
  const known = ROWS.get(name)
  if (known && words.length > 0) throw invalid(name, 'takes no parts')
  return known ? complete(known) : customScheme(name, readParts(name, words))
}

function complete({ agent = 'webhook-relay', ...row }: SenderSpec): WebhookScheme {
  const { event, id = [] } = row
  const headers = [event, id].map((places) => places.find((place) => !isInBody(place)))
  return {
    action: [],
    repo: [],
    number: [],
    formSignature: 'body',
    content: 'json',
    style: () => 'compact',
    ...row,
    id,
    idOr: 'digest',
    headers: (eventName, deliveryId) => ({
      'Content-Type': 'application/json',
      'User-Agent': agent,
      ...(headers[0] !== undefined && { [canonicalHeaderName(headers[0])]: eventName }),
      ...(headers[1] !== undefined && { [canonicalHeaderName(headers[1])]: deliveryId }),
    }),
  }
}

const HEADER = /^[\w-]{1,64}$/
const PLACE = /^(?:[\w-]{1,64}(?:#\w{1,32})?|\$(?:\.[\w-]{1,64}){1,8})$/
const placeLike = (member: string) =>
  [PLACE, `a header's name, or a member of the JSON such as ${member}`] as const
/** Syntax of a scheme's parts and its description, in the order in which a message lists them. */
const FORMS = {
  header: [HEADER, "a header's name"],
  prefix: [/^[\x21-\x7e]{0,64}$/, 'at most 64 visible characters'],
  encoding: [/^(?:hex|base64)$/, 'hex or base64'],
  algorithm: [/^sha(?:1|256|512)$/, 'sha256, sha1 or sha512'],
  signed: [/^(?:[!-z|~]|\{(?:timestamp|id|body)\}){1,200}$/, 'a text of {timestamp}, {id} and {body}'],
  event: placeLike('$.type'),
  id: placeLike('$.id'),
  time: placeLike('$.time'),
  tolerance: [/./, 'a duration such as 5m'],
} as const satisfies Record<string, readonly [RegExp, string]>
type SchemeParts = Partial<Readonly<Record<keyof typeof FORMS, string>>>
const NAMES_OF_HEADERS = new Set(['header', 'event', 'id', 'time'])

function readParts(name: string, parts: readonly string[]): SchemeParts {
  const read: Record<string, string> = Object.create(null)
  for (const part of parts) {
    const [, key = '', value = ''] = /^([^=]*)=(.*)$/s.exec(part) ?? []
    const [form, what] = Object.entries(FORMS).find(([each]) => each === key)?.[1] ?? []
    // The rest of the part may be a misplaced secret.
    const [wrong = ''] = /^[a-z]{1,16}=/i.exec(part) ?? []
    if (!form) throw invalid(name, `has no part '${wrong}…': write ${Object.keys(FORMS).join('=, ')}=`)
    if (!form.test(value)) throw invalid(name, `needs ${key}= with ${what}`)
    if (key in read) throw invalid(name, `has ${key}= twice: leave one out`)
    const isHeader = NAMES_OF_HEADERS.has(key) && !isInBody(value)
    if (isHeader) checkHeader(name, key, value)
    read[key] = isHeader ? value.toLowerCase() : value
  }
  const shown = ['event', 'id'].find((key) => name === 'token' && read[key]?.split('#')[0] === read['header'])
  if (shown !== undefined)
    throw invalid(
      name,
      `cannot have ${shown}=${read['header']}: that header holds the secret, which logs and commands would show. Leave ${shown}= out, or name another header`,
    )
  return read
}

/**
 * Refuses a header that relay does not store and forward, because the delivery could not be verified later, neither
 * here nor by its receiver. The header of a token may be a credential, which relay writes again from the secret.
 * @throws RelayError `settings`
 */
function checkHeader(name: string, key: string, value: string): void {
  const [header = ''] = value.split('#')
  const isToken = name === 'token' && key === 'header'
  if (isToken ? !isConnectionHeader(header) : isStoredHeader(header)) return
  throw invalid(
    name,
    `cannot have ${key}=${header}: relay does not store and forward that header, so nothing could verify the delivery later. Name another header that the sender has, or have it send one of its own, such as X-Signature`,
  )
}

/**
 * Creates the scheme that a user has defined. @throws RelayError `settings` if it could prove nothing, or is ambiguous
 */
function customScheme(name: string, parts: SchemeParts): WebhookScheme | undefined {
  const row = customSpec(name, parts)
  const [unclear] = row?.proofs.flatMap(({ signed }) => ambiguity(signed) ?? []) ?? []
  if (unclear !== undefined) throw invalid(name, unclear)
  const scheme = row && complete(row)
  if (!scheme || isConsistent(scheme)) return scheme
  // A part is at fault if replacing it makes the scheme work.
  const isAtFault = (key: 'prefix' | (typeof PLACES)[number]): boolean => {
    const other = key === 'prefix' ? 'v1=' : isInBody(parts[key] ?? '') ? `$.own-${key}` : `x-own-${key}`
    const changed = customSpec(name, { ...parts, [key]: other })
    return changed !== undefined && isConsistent(complete(changed))
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
  secret: new Secret('trial'),
  event: 'event',
  id: '0b989ba4-242f-11e5-81e1-c7b6966d2516',
  now: 1_767_225_600_000,
} as const

/** True if a delivery that relay signs with a scheme is proved by it, and has its event and id. */
function isConsistent(scheme: WebhookScheme): boolean {
  const { secret, event, id, now } = TRIAL
  const { proofs, event: eventPlaces, id: idPlaces } = scheme
  const payload: Record<string, unknown> = Object.create(null)
  const put = (place: ValueLocation, value: unknown): void => {
    if (isInBody(place)) putMember(payload, place.slice(2).split('.'), value)
  }
  for (const place of eventPlaces) put(place, event)
  for (const place of idPlaces) put(place, id)
  for (const { time } of proofs) if (time) put(time.place, now / time.unit)
  const body = Buffer.from(JSON.stringify(payload))
  const signed = signDelivery(secret, { id, body, now }, scheme)
  const names = new Set(signed.map(([name]) => name.toLowerCase()))
  const others = Object.entries(scheme.headers(event, id)).filter(([name]) => !names.has(name.toLowerCase()))
  const lines = indexHeaders([...others, ...signed])
  const isProved = (proof: Proof): boolean =>
    findProof(secret, { lines, signed: body }, scheme) === proof &&
    staleness(proof, { lines, payload }, now) === undefined
  const holds = (places: readonly ValueLocation[], value: string): boolean =>
    places.every((place) => valueAt(place, lines, payload) === value)
  return proofs.every(isProved) && holds(eventPlaces, event) && holds(idPlaces, id)
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
function customSpec(name: string, parts: SchemeParts): SenderSpec | undefined {
  if (!CUSTOM_SCHEMES.some((each) => each === name)) return undefined
  const { header, prefix = '', event, id } = parts
  const places = { event: event ? [event] : [], id: id ? [id] : [], content: 'any' } as const
  if (name === 'none') return { ...places, proofs: [] }
  if (header === undefined) throw invalid(name, 'needs the name of the header, as header=X-Signature')
  if (name === 'token') {
    // `prefix=Bearer` stands before the token with a space.
    const before = /^\w+$/.test(prefix) ? `${prefix} ` : prefix
    return { ...places, proofs: [{ ...HMAC, header, prefix: before, algorithm: 'token' }] }
  }
  return { ...places, proofs: [customHmac(name, header, parts)] }
}

function customHmac(name: string, header: string, parts: SchemeParts): Proof {
  const { prefix = '', encoding, algorithm, id, time, tolerance = '5m' } = parts
  const signed = parts.signed ?? (time === undefined || isInBody(time) ? '{body}' : '{timestamp}.{body}')
  const within = parseDuration(tolerance)
  if (within === undefined) throw invalid(name, `needs tolerance= with ${FORMS.tolerance[1]}`)
  if (!signed.includes('{body}')) throw invalid(name, 'needs {body} in signed=')
  if (signed.includes('{id}') && (id === undefined || isInBody(id)))
    throw invalid(name, 'needs id= with a header for the {id} in signed=')
  const isInText = signed.includes('{timestamp}')
  if (isInText && (time === undefined || isInBody(time)))
    throw invalid(name, 'needs time= with a header for the {timestamp} in signed=')
  if (time !== undefined && !isInText && !isInBody(time))
    throw invalid(name, 'needs {timestamp} in signed=: a time that is not signed shows nothing')
  return {
    header,
    prefix,
    ...(prefix !== '' && { separator: prefix.includes(',') ? (' ' as const) : (',' as const) }),
    algorithm: algorithm === 'sha1' || algorithm === 'sha512' ? algorithm : 'sha256',
    encoding: encoding === 'base64' ? 'base64' : 'hex',
    signed,
    ...(id !== undefined && signed.includes('{id}') && { id }),
    ...(time !== undefined && { time: seconds(time, within) }),
  }
}

function invalid(name: string, why: string): RelayError {
  return new RelayError('settings', `The scheme ${name} ${why}`)
}
