import { type HeaderLines, indexHeaders } from '../http/headers.js'
import type { Delivery } from '../journal/types.js'
import { algorithmWords, usesKeys } from './algorithms.js'
import { readContent } from './content.js'
import { proofIn, provesBody } from './proof.js'
import { isForm } from './proving.js'
import { headerOf, isInBody, placeWords, type Proof, type WebhookScheme } from './scheme.js'
import type { Description, SecretWords } from './sender.js'

/** Describes for a person what proved a stored delivery. */
export function describe(delivery: Delivery, secret: SecretWords, scheme: WebhookScheme): Description {
  const { proofs, id, event, action, made = [] } = scheme
  const [first = '$.'] = event
  return {
    proof: sentences(delivery, indexHeaders(delivery.headers), secret, scheme),
    tolerance: proofs.find(({ time }) => time)?.time?.tolerance ?? 0,
    made: [...new Set([...proofs.flatMap(madeBy), ...made, ...id, first])].filter(
      (place) => !isInBody(place),
    ),
    eventIn: isInBody(first) ? 'body' : action.some(isInBody) ? 'header and body' : 'header',
  }
}

function madeBy({ place, id, time }: Proof): string[] {
  return [place, id, time?.place].flatMap((each) => (each === undefined ? [] : (headerOf(each) ?? [])))
}

function sentences(
  { headers, body: bytes, query }: Delivery,
  lines: HeaderLines,
  { verifiedBy, words }: SecretWords,
  scheme: WebhookScheme,
): readonly string[] {
  const payload = (): unknown => readContent(bytes).value
  // A token's header is not stored, so the last proof is taken.
  const proof = proofIn({ lines, query, payload }, scheme.proofs) ?? scheme.proofs.at(-1)
  if (!proof) return ['Nothing proves this delivery: its source has no secret.']
  const header = headerOf(proof.place)
  const [name] = headers.find(([each]) => each.toLowerCase() === header) ?? [placeWords(proof.place)]
  const still = verifiedBy === 'previous' ? ', which is still accepted' : ''
  const key = verifiedBy === 'own' ? words : `the private key of the sender, whose public half is ${words}`
  if (proof.algorithm === 'token')
    return [
      `${name} was ${words} itself${still}.${isInBody(proof.place) ? '' : ' It is not stored.'}`,
      'A token proves who sent the delivery, and nothing of what is in it.',
    ]
  if (proof.algorithm === 'jwt')
    return [
      `${name} is a token (JWT, ${proof.jwt?.algorithm}) that ${verifiedBy === 'own' ? `relay made with ${words}` : 'the sender made'}.`,
      proof.jwt?.isBody
        ? 'Its claims are all that the sender says, so that is proved; headers are not signed.'
        : proof.jwt?.digest
          ? 'It covers the exact bytes of the body, by their SHA-256; headers are not signed.'
          : 'It proves who sent the delivery, and nothing of what is in it.',
    ]
  const body =
    scheme.formSignature === 'payload' && isForm(lines)
      ? 'the payload inside the form'
      : 'the exact bytes of the body'
  const hasBody = proof.signed.includes('{body}')
  const where = proof.each === undefined ? '' : ` of each member of ${proof.each}`
  const signed = hasBody ? `${proof.signed}, where {body} is ${body},` : `${proof.signed}${where}`
  const covers = proof.signed === '{body}' ? body : signed
  const event = scheme.event.find((place) => isInBody(place) || lines.has(place)) ?? ''
  if (!provesBody(proof) && !proof.signed.includes('{fields}'))
    return [
      `${name} is the HMAC-${proof.algorithm.toUpperCase()} of ${covers} with ${words}${still}.`,
      'Nothing else of the body is signed.',
    ]
  const isNamedInside = isInBody(event)
  return [
    `${name} is the ${algorithmWords(proof.algorithm)} of ${covers} with ${usesKeys(proof.algorithm) ? key : words}${still}.`,
    ...(verifiedBy === 'own' ? ['relay made this delivery itself; the sender did not send it.'] : []),
    isNamedInside
      ? 'The body names the event, so that is proved too; headers are not signed.'
      : proof.signed === '{body}'
        ? 'It covers the body only: headers, and so the event and the delivery id, are not signed.'
        : 'The header that names the event is not signed.',
  ]
}
