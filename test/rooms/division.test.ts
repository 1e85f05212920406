import { createHmac, randomUUID } from 'node:crypto'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { RelayError } from '../../src/base/errors.js'
import { Secret } from '../../src/base/secret.js'
import { schemeOf } from '../../src/codehost/schemes.js'
import { decodeKey, signDelivery, staleness } from '../../src/schemes/proof.js'
import { isInBody, type Proof, valueAt, type WebhookScheme } from '../../src/schemes/scheme.js'
import { SCHEME_NAMES } from '../../src/schemes/senders.js'
import { explainSignature } from '../../src/webhook/explain.js'
import { verifySignature } from '../../src/webhook/signature.js'
import { indexHeaders } from '../../src/http/headers.js'
import type { Header } from '../kit/delivery.js'

const NOW = 1_767_225_600_000
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

const piecesOf = ({ signed }: Proof): string[] => signed.split(/(\{\w+\})/)
const textOf = (proof: Proof, parts: Parts): string =>
  Object.entries(parts).reduce(
    (text, [name, value]) => text.replaceAll(`{${name}}`, () => value),
    proof.signed,
  )

/** The request of these parts with the signature of a text. */
function requestOf(proof: Proof, parts: Parts, text: string) {
  const { algorithm, encoding, prefix, header, id, time, key } = proof
  if (algorithm === 'token') return expect.unreachable()
  const hmac = createHmac(algorithm, (key && decodeKey(new Secret(SECRET))) ?? SECRET)
  const digest = prefix + hmac.update(text).digest(encoding)
  const [timeHeader = '', pair] = time && !isInBody(time.place) ? time.place.split('#') : []
  const headers: Header[] = [[header, pair === undefined ? digest : `${pair}=${parts.timestamp},${digest}`]]
  if (id !== undefined) headers.push([id, parts.id])
  if (timeHeader !== '' && pair === undefined) headers.push([timeHeader, parts.timestamp])
  return { headers, body: Buffer.from(parts.body) }
}

/** Whether relay takes the parts for what was signed, as intake decides it, and as relay verify does where no time is known. */
async function isTaken(scheme: WebhookScheme, proof: Proof, parts: Parts, text: string) {
  const { headers, body } = requestOf(proof, parts, text)
  const sender = { scheme, secrets: { current: new Secret(SECRET) } }
  const lines = indexHeaders(headers)
  const found = verifySignature(lines, body, sender)
  const payload = { webhookTimestamp: NOW }
  const isNow = found?.proof !== undefined && staleness(found.proof, { lines, payload }, NOW) === undefined
  const { valid } = await explainSignature({ headers, body }, sender, undefined)
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
  const found = verifySignature(lines, body, { scheme, secrets: { current: new Secret(SECRET) } })
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
  const named = SCHEME_NAMES.filter((name) => !['hmac', 'token', 'none'].includes(name))
  const all = ['github', 'gitea', ...named].flatMap((name) =>
    schemeOf(name)
      .proofs.filter(({ algorithm }) => algorithm !== 'token')
      .map((proof) => [`${name}, ${proof.header}`, schemeOf(name), proof] as const),
  )

  it.each(all)('%s', async (_, scheme, proof) => {
    await fc.assert(
      fc.asyncProperty(parts, async (genuine) => {
        const { taken, own } = await takenOf(scheme, proof, genuine)
        expect(taken).toEqual(own)
      }),
      { numRuns: 40 },
    )
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
    ['{timestamp}{body}', 'needs text between {timestamp} and {body} in signed=, such as a dot'],
    ['{id}{timestamp}.{body}', 'needs text between {id} and {timestamp} in signed=, such as a dot'],
    ['{id}-{body}', 'needs text after {id} in signed= that no id contains, such as a dot'],
    ['{id}0{body}', 'needs text after {id} in signed= that no id contains, such as a dot'],
    ['{timestamp}0{body}', 'needs text that is no digit after {timestamp} in signed='],
    [
      '{body}.{timestamp}',
      'needs {body} at the end of signed=: a body may contain what stands before {timestamp}',
    ],
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
