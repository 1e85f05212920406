import { createHmac, randomUUID } from 'node:crypto'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { RelayError } from '../../src/base/errors.js'
import { Secret } from '../../src/base/secret.js'
import { usesKeys } from '../../src/senders/algorithms.js'
import { schemeOf } from '../../src/senders/senders.js'
import { encodeDigest, signDelivery, staleness } from '../../src/senders/proof.js'
import { decodeKey } from '../../src/senders/secrets.js'
import { isInBody, type Proof, valueAt, type WebhookScheme } from '../../src/senders/scheme.js'
import { SCHEME_NAMES } from '../../src/senders/senders.js'
import { explainSignature } from '../../src/senders/explain.js'
import { verifySignature } from '../../src/senders/proving.js'
import { timeText } from '../../src/senders/time.js'
import { indexHeaders } from '../../src/http/headers.js'
import type { Header } from '../kit/delivery.js'

const NOW = 1_767_225_600_000
const CUSTOM: ReadonlySet<string> = new Set([
  'hmac',
  'token',
  'basic',
  'none',
  'ed25519',
  'ecdsa',
  'rsa',
  'jwt',
])
const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'

/** What a request gives for the parts of what is signed. */
interface Parts {
  readonly id: string
  readonly timestamp: string
  readonly body: string
}
const NONE: Parts = { id: '', timestamp: '', body: '' }

/** All ways to divide a text into the parts of a template. */
function* divisions(text: string, pieces: readonly string[], parts = NONE): Generator<Parts> {
  const [literal = '', part, ...more] = pieces
  if (!text.startsWith(literal)) return
  const rest = text.slice(literal.length)
  if (part === undefined) {
    if (rest === '') yield parts
    return
  }
  const name = part.slice(1, -1)
  for (let end = 0; end <= rest.length; end++)
    yield* divisions(rest.slice(end), more, { ...parts, [name]: rest.slice(0, end) })
}

const PAYLOAD_URL = 'https://relay.example/webhook/shop'
/** The template, with the address that is the same in all requests. */
const signedOf = ({ signed }: Proof): string =>
  signed.replaceAll('{url}', PAYLOAD_URL).replaceAll('{method}', 'POST')
const piecesOf = (proof: Proof): string[] => signedOf(proof).split(/(\{\w+\})/)
const textOf = (proof: Proof, parts: Parts): string =>
  Object.entries(parts).reduce(
    (text, [name, value]) => text.replaceAll(`{${name}}`, () => value),
    signedOf(proof),
  )

/** The request of these parts with the signature of a text. */
function requestOf(proof: Proof, parts: Parts, text: string) {
  const { algorithm, encoding, prefix, place: header, id, time, key, separator = ',' } = proof
  if (algorithm === 'token') return expect.unreachable()
  const hmac = createHmac(algorithm, (key && decodeKey(new Secret(SECRET), key)) ?? SECRET)
  const digest = prefix + encodeDigest(hmac.update(text).digest(), encoding)
  const [timeHeader = '', pair] = time && !isInBody(time.place) ? time.place.split('#') : []
  const headers: Header[] = [
    [
      header,
      pair === undefined
        ? digest
        : `${/^\d/.test(pair) ? '' : `${pair}=`}${parts.timestamp}${separator}${digest}`,
    ],
  ]
  if (id !== undefined) headers.push([id, parts.id])
  if (timeHeader !== '' && pair === undefined) headers.push([timeHeader, parts.timestamp])
  return { headers, body: Buffer.from(parts.body), payloadUrl: PAYLOAD_URL }
}

/** Whether relay takes the parts for what was signed, as intake decides it, and as relay verify does where no time is known. */
async function isTaken(scheme: WebhookScheme, proof: Proof, parts: Parts, text: string) {
  const { headers, body, payloadUrl } = requestOf(proof, parts, text)
  const sender = { scheme, secrets: { current: new Secret(SECRET) } }
  const lines = indexHeaders(headers)
  const found = verifySignature({ lines, body, payloadUrl }, sender)
  const payload = { webhookTimestamp: NOW }
  const isNow = found?.proof !== undefined && staleness(found.proof, { lines, payload }, NOW) === undefined
  const { valid } = await explainSignature({ headers, body, payloadUrl }, sender, undefined)
  return { isNow, valid }
}

const seconds = fc.integer({ min: -250, max: 250 }).map((drift) => String(NOW / 1000 + drift))
/** What stands between parts, and what looks like them. */
const fragment = fc.oneof(
  fc.constantFrom('.', ':', '-', '--', '.1.', '0', 'v0:', '', '{', '}', 'payload=', '&'),
  seconds,
  fc.stringMatching(/^[a-z0-9]{0,4}$/),
)
const body = fc.array(fragment, { maxLength: 7 }).map((all) => all.join(''))
const id = fc.stringMatching(/^[a-z0-9_]{1,6}$/)

/** Of all divisions of what a sender signed, those that relay takes: now, and where no time is known; and the sender's own. */
async function takenOf(scheme: WebhookScheme, proof: Proof, genuine: Parts) {
  const text = textOf(proof, genuine)
  const pieces = piecesOf(proof)
  const used = (parts: Parts): Parts => ({
    id: proof.signed.includes('{id}') ? parts.id : '',
    timestamp: proof.signed.includes('{timestamp}') ? parts.timestamp : '',
    body: parts.body,
  })
  const own = used(genuine)
  // Where the body has the time, this one has none.
  const isTimed = proof.time === undefined || !isInBody(proof.time.place)
  const taken: { isNow: Parts[]; valid: Parts[] } = { isNow: isTimed ? [] : [own], valid: [] }
  for (const parts of divisions(text, pieces)) {
    // Of a template that names a part twice, both must be equal.
    if (textOf(proof, parts) !== text) continue
    const { isNow, valid } = await isTaken(scheme, proof, parts, text)
    if (isNow && isTimed) taken.isNow.push(parts)
    if (valid) taken.valid.push(parts)
  }
  return { taken, own: { isNow: [own], valid: [own] } }
}

const parts = fc.record({ id, timestamp: seconds, body })

/** The proofs of a scheme, those with a key pair by an HMAC: how a text divides does not depend on what signs it. */
function withSecrets({ proofs }: WebhookScheme): readonly Proof[] {
  return proofs.map(({ secretForm: _form, ...proof }) =>
    usesKeys(proof.algorithm) ? { ...proof, algorithm: 'sha256' as const, encoding: 'hex' as const } : proof,
  )
}

/** Sets a value at a path of names, in objects without a prototype's names. */
function withMember(
  target: Record<string, unknown>,
  [name = '', ...rest]: readonly string[],
  value: unknown,
): void {
  if (rest.length === 0) target[name] = value
  else {
    const inner: Record<string, unknown> = { ...Object(target[name]) }
    target[name] = inner
    withMember(inner, rest, value)
  }
}

/** A request whose members have these values, with the signature of a text. */
function memberRequest(
  { place, each, time, ...proof }: Proof,
  values: ReadonlyMap<string, string>,
  text: string,
) {
  if (proof.algorithm === 'token' || proof.algorithm === 'jwt' || usesKeys(proof.algorithm))
    throw new Error('no HMAC')
  const secret = new Secret(proof.key === 'hex' ? 'abcd' : SECRET)
  const key = (proof.key && decodeKey(secret, proof.key)) ?? secret.reveal()
  const made: Record<string, unknown> = {}
  const digest = encodeDigest(createHmac(proof.algorithm, key).update(text).digest(), proof.encoding)
  withMember(made, place.slice(2).split('.'), proof.prefix + digest)
  for (const [at, value] of values)
    withMember(made, (at === '{timestamp}' ? (time?.place ?? '') : at).slice(2).split('.'), value)
  const whole: Record<string, unknown> = {}
  if (each === undefined) Object.assign(whole, made)
  else withMember(whole, each.slice(2).split('.'), [made])
  return { request: { lines: new Map(), body: Buffer.from(JSON.stringify(whole)) }, secret }
}

/** All ways to give parts of a template values that make this text. */
function* assigned(
  text: string,
  [literal = '', part, ...more]: readonly string[],
  known: ReadonlyMap<string, string> = new Map(),
): Generator<ReadonlyMap<string, string>> {
  if (!text.startsWith(literal)) return
  const rest = text.slice(literal.length)
  if (part === undefined) {
    if (rest === '') yield known
    return
  }
  const name = part === '{timestamp}' ? part : part.slice(1, -1)
  for (let end = 0; end <= rest.length; end++)
    // Only where the text behind it may begin.
    if (more.length < 2 || rest.startsWith(more[0] ?? '', end))
      yield* assigned(rest.slice(end), more, new Map([...known, [name, rest.slice(0, end)]]))
}

/** Parts whose time is in the unit of a proof, and within its tolerance. */
const partsOf = ({ time }: Proof) =>
  parts.map((all) => {
    const drift = Number(all.timestamp) * 1000 - NOW
    const within = time && Math.abs(drift) > time.tolerance ? 0 : drift
    return { ...all, timestamp: timeText(NOW + within, time?.unit ?? 's') }
  })

/** The scheme of a text, or the error that refuses it. */
function schemeOrRefusal(text: string): WebhookScheme | RelayError {
  try {
    return schemeOf(text)
  } catch (error) {
    if (error instanceof RelayError) return error
    throw error
  }
}

/** Whether relay proves a request that it signs with an id and a time of its own, and reads there what it wrote. */
function provesOwn(scheme: WebhookScheme, proof: Proof): boolean {
  const deliveryId = randomUUID()
  const members = new Map<string, unknown>()
  const write = (place: string | undefined, value: unknown) =>
    place !== undefined && members.set(place, value)
  write(scheme.event[0], 'some.event')
  write(scheme.id[0], deliveryId)
  write(proof.time?.place, NOW / 1000)
  const text = [...members].flatMap(([place, value]) =>
    isInBody(place) ? [jsonOf(place.slice(2).split('.'), value)] : [],
  )
  // Members of one object, if two have no name in common.
  const body = Buffer.from(text.length === 0 ? '{}' : `{${text.join()}}`)
  const payload: unknown = JSON.parse(body.toString())
  const signed = signDelivery(new Secret(SECRET), { id: deliveryId, body, now: NOW }, scheme)
  const ofSignature = new Set(signed.map(([name]) => name.toLowerCase()))
  const others = Object.entries(scheme.headers('some.event', deliveryId))
  const lines = indexHeaders([...others.filter(([name]) => !ofSignature.has(name.toLowerCase())), ...signed])
  const found = verifySignature({ lines, body }, { scheme, secrets: { current: new Secret(SECRET) } })
  return (
    found?.proof === proof &&
    staleness(proof, { lines, payload }, NOW) === undefined &&
    [...members].every(
      ([place, value]) => place === proof.time?.place || valueAt(place, lines, payload) === value,
    )
  )
}

const jsonOf = ([name = '', ...rest]: readonly string[], value: unknown): string =>
  `${JSON.stringify(name)}:${rest.length === 0 ? JSON.stringify(value) : `{${jsonOf(rest, value)}}`}`

describe('what is signed divides in one way only', () => {
  const named = SCHEME_NAMES.filter(
    (name) => !['hmac', 'token', 'none', 'ed25519', 'ecdsa', 'rsa', 'jwt', 'twilio'].includes(name),
  )
  const all = ['github', 'gitea', ...named].flatMap((name) =>
    withSecrets(schemeOf(name))
      // Fields that are joined without anything between divide in several ways, as docs/senders.md says.
      .filter(
        // Members of a body have a law of their own. Of the address of Twilio, only the query is the request's.
        ({ algorithm, place, signed }) =>
          /^(?:md5|sha\d+)$/.test(algorithm) &&
          !isInBody(place) &&
          !/\{(?:\$|\?|fields|headers)/.test(signed),
      )
      .map((proof) => [`${name}, ${proof.place}`, { ...schemeOf(name), proofs: [proof] }, proof] as const),
  )

  it('of every sender with a key pair, too', () => {
    expect(all.map(([text]) => text.split(',')[0])).toEqual(
      expect.arrayContaining(['discord', 'telnyx', 'sendgrid', 'standard']),
    )
  })

  it.each(all)('%s', async (_, scheme, proof) => {
    await fc.assert(
      fc.asyncProperty(partsOf(proof), async (genuine) => {
        const { taken, own } = await takenOf(scheme, proof, genuine)
        expect(taken).toEqual(own)
      }),
      { numRuns: 40 },
    )
  })

  const ofMembers = [
    ...SCHEME_NAMES.filter((name) => !CUSTOM.has(name)).map((name) => [name, schemeOf(name)] as const),
    ['own', schemeOf('hmac at=$.sign signed={$.a}:{$.b}.{$.c}')] as const,
    ['own with items', schemeOf('hmac at=$.sign each=$.items signed={$.a}:{$.b}')] as const,
  ].flatMap(([name, scheme]) =>
    withSecrets(scheme)
      .filter(({ signed, keyName }) => /\{\$\./.test(signed) && keyName === undefined)
      .map((proof) => [`${name}, ${proof.place}`, { ...scheme, proofs: [proof] }, proof] as const),
  )

  it.each(ofMembers)('into members: %s', (_, scheme, proof) => {
    const pieces = proof.signed.split(/(\{[^{}]+\})/)
    const names = pieces.filter((_piece, at) => at % 2 === 1)
    const short = fc.stringMatching(/^[a-z0-9:.]{0,3}$/)
    let taken = 0
    fc.assert(
      fc.property(fc.array(short, { minLength: names.length, maxLength: names.length }), (values) => {
        const own = new Map(
          names.map((name, at) =>
            name === '{timestamp}'
              ? [name, timeText(NOW, proof.time?.unit ?? 's')]
              : [name.slice(1, -1), values[at] ?? ''],
          ),
        )
        const text = pieces
          .map((piece, at) => (at % 2 === 0 ? piece : (own.get(piece) ?? own.get(piece.slice(1, -1)))))
          .join('')
        const found = [...assigned(text, pieces)].filter((each) => {
          const { request, secret } = memberRequest(proof, each, text)
          return verifySignature(request, { scheme, secrets: { current: secret } }) !== undefined
        })
        taken += found.length
        // A genuine one whose values contain what separates them may be refused.
        const isClear = values.every((value) => !/[:.]/.test(value))
        expect([found.length <= 1, isClear ? found : [own]]).toEqual([true, [own]])
      }),
      { numRuns: 60 },
    )
    expect(taken).toBeGreaterThan(0)
  })

  const literal = fc.constantFrom('', '', '.', ':', '-', '--', '.1.', '0', '0x', 'v0:', '~')
  const template = fc
    .tuple(
      fc.shuffledSubarray(['{id}', '{timestamp}', '{body}', '{id}', '{body}'], { minLength: 1 }),
      fc.array(literal, { minLength: 6, maxLength: 6 }),
    )
    .map(([order, texts]) =>
      texts
        .slice(0, order.length + 1)
        .map((text, at) => text + (order[at] ?? ''))
        .join(''),
    )

  it('by every template of hmac that is not refused', async () => {
    let [refused, taken] = [0, 0]
    await fc.assert(
      fc.asyncProperty(template, parts, async (signed, genuine) => {
        fc.pre(signed.includes('{body}'))
        const places = `${signed.includes('{id}') ? ' id=X-Id' : ''}${signed.includes('{timestamp}') ? ' time=X-Time' : ''}`
        const scheme = schemeOrRefusal(`hmac header=X-Sign signed=${signed}${places}`)
        if (scheme instanceof RelayError) {
          refused++
          return
        }
        taken++
        const [proof = expect.unreachable()] = scheme.proofs
        const { taken: found, own } = await takenOf(scheme, proof, genuine)
        expect(found).toEqual(own)
      }),
      { numRuns: 300 },
    )
    expect([refused > 20, taken > 20]).toEqual([true, true])
  })

  it.each([
    ['{id}{body}', 'needs text between {id} and {body} in signed=, such as a dot'],
    ['{id}{timestamp}.{body}', 'needs text between {id} and {timestamp} in signed=, such as a dot'],
    ['{id}-{body}', 'needs text after {id} in signed= that no id contains, such as a dot'],
    ['{id}0{body}', 'needs text after {id} in signed= that no id contains, such as a dot'],
    ['{body}.{id}', 'needs {body} at the end of signed=: a body may contain what stands before {id}'],
    ['{fields}.{id}', 'needs {fields} at the end of signed=: fields may contain what stands before {id}'],
    ['{body}{query}', 'needs {body} at the end of signed=: a body may contain what stands before {query}'],
    [
      '{url}.{timestamp}{body}',
      String.raw`needs text after {url} in signed= that no address contains, such as \n`,
    ],
    ['{query}{body}', 'needs text between {query} and {body} in signed=, such as a dot'],
    ['{body}.{body}', 'needs {body} at the end of signed=: a body may contain what stands before {body}'],
  ])('hmac refuses %s, and says why', (signed, why) => {
    const places = `${signed.includes('{id}') ? ' id=X-Id' : ''}${signed.includes('{timestamp}') ? ' time=X-Time' : ''}`
    expect(() => schemeOf(`hmac header=X-Sign signed=${signed}${places}`)).toThrow(
      new RelayError('settings', `The scheme hmac ${why}`),
    )
  })

  const name = fc.constantFrom('X-Sign', 'x-sign', 'X-A', 'X-B', 'X-C', 'X-D', 'X-E')
  const place = fc.oneof(
    { weight: 5, arbitrary: name },
    fc.tuple(name, fc.constantFrom('t', 'i')).map(([header, key]) => `${header}#${key}`),
    fc.constantFrom('$.a', '$.b', '$.a.b', '$.__proto__.c'),
  )
  const optional = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined })
  const definition = fc
    .record({
      header: fc.constantFrom('X-Sign', 'x-sign', 'X-A'),
      prefix: optional(fc.constantFrom('v1=', 'v1,', 't=', ',', '=', '.*')),
      encoding: optional(fc.constantFrom('hex', 'base64')),
      algorithm: optional(fc.constantFrom('sha1', 'sha256', 'sha512')),
      signed: fc.oneof(
        { weight: 1, arbitrary: template },
        {
          weight: 3,
          arbitrary: fc.constantFrom(
            undefined,
            '{body}',
            '{id}.{body}',
            '{timestamp}.{body}',
            '{id}:{timestamp}:{body}',
          ),
        },
      ),
      event: optional(place),
      id: optional(place),
      time: optional(place),
      tolerance: optional(fc.constantFrom('5m', '2h')),
    })
    .map((given) =>
      Object.entries(given).reduce(
        (text, [key, value]) => (value === undefined ? text : `${text} ${key}=${value}`),
        'hmac',
      ),
    )

  const WHAT_TO_CHANGE = /^The scheme hmac (?:needs|could not prove what it signs: change) /

  it('by every definition of hmac that is not refused, which also proves what relay signs with it', async () => {
    let [refused, taken] = [0, 0]
    await fc.assert(
      fc.asyncProperty(definition, parts, async (text, genuine) => {
        const scheme = schemeOrRefusal(text)
        if (scheme instanceof RelayError) {
          refused++
          if (!WHAT_TO_CHANGE.test(scheme.message)) throw scheme
          return
        }
        taken++
        const [proof = expect.unreachable()] = scheme.proofs
        expect(provesOwn(scheme, proof)).toBe(true)
        const { taken: found, own } = await takenOf(scheme, proof, genuine)
        expect(found).toEqual(own)
      }),
      { numRuns: 1500 },
    )
    expect([refused > 50, taken > 50]).toEqual([true, true])
  })
})
