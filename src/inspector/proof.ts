import { isCodeHost } from '../base/providers.js'
import { formatDuration } from '../base/time.js'
import { schemeOf } from '../codehost/schemes.js'
import { type HeaderLines, indexHeaders, canonicalHeaderName } from '../http/headers.js'
import { editedFrom, type Entry, type Summary } from '../journal/types.js'
import { forwardedRequest } from '../replay/prepare.js'
import { isInBody, type Proof, type WebhookScheme } from '../schemes/scheme.js'
import { isForm } from '../webhook/signature.js'
import type { ProofDetail } from './api.js'
import type { InspectorParts } from './parts.js'

type Verified = Pick<Summary, 'provider' | 'verifiedBy'>

/** Formats the short verdict of a delivery. */
export function verdictOf(summary: Verified & Pick<Summary, 'restored' | 'headers'>): string {
  const { verifiedBy, restored } = summary
  const from = editedFrom(summary)
  const secret = secretOf(summary)
  const signed = verifiedBy === 'none' ? 'not signed: its source has no secret' : `signed with ${secret}`
  if (from !== undefined) return `edited copy of #${from}, ${signed}`
  if (verifiedBy === 'none') return 'not verified: its source proves nothing'
  const restoration = restored
    ? `, its bytes restored (${restored.how})${restored.unproved ? ', its event not proved' : ''}`
    : ''
  return `verified with ${secret}${restoration}`
}

function secretOf({ provider, verifiedBy }: Verified): string {
  return isCodeHost(provider) ? `the ${verifiedBy} webhook secret` : `the ${verifiedBy} secret of ${provider}`
}

/** Describes the proof of a delivery, and what happens to its signature when it is sent again. */
export function describeProof(
  entry: Entry,
  { sources, clock }: Pick<InspectorParts, 'sources' | 'clock'>,
): ProofDetail {
  const { provider, headers } = entry
  const scheme = schemeOf(entry.scheme ?? provider)
  const lines = indexHeaders(headers)
  const again = forwardedRequest(entry, sources.get(provider), clock())
  const [event = '$.'] = scheme.event
  return {
    proof: [...sentences(entry, lines, scheme), ...restoration(entry)],
    again: again.isRenewed
      ? `${provider} accepts a signature for ${formatDuration(toleranceOf(scheme))}, so the target gets this delivery with a new time and signature.`
      : 'The target gets the same bytes once more, even if it succeeded there.',
    made: [...new Set([...scheme.proofs.flatMap(madeBy), ...scheme.id, event])].filter(
      (place) => !isInBody(place),
    ),
    hasEventHeader: !isInBody(event) && (isCodeHost(provider) || scheme.action.length === 0),
  }
}

function toleranceOf({ proofs }: WebhookScheme): number {
  return proofs.find(({ time }) => time)?.time?.tolerance ?? 0
}

function madeBy({ header, id, time }: Proof): string[] {
  return [header, id, time?.place].flatMap((place) => place?.split('#')[0] ?? [])
}

function sentences(entry: Entry, lines: HeaderLines, scheme: WebhookScheme): readonly string[] {
  const { verifiedBy, headers } = entry
  const [first] = scheme.proofs
  // A token's header is not stored, so the last proof is taken.
  const proof = scheme.proofs.find(({ header }) => lines.has(header)) ?? scheme.proofs.at(-1)
  if (!proof || !first) return ['Nothing proves this delivery: its source has no secret.']
  const [name] = headers.find(([each]) => each.toLowerCase() === proof.header) ?? [
    canonicalHeaderName(proof.header),
  ]
  const still = verifiedBy === 'previous' ? ', which is still accepted' : ''
  if (proof.algorithm === 'token')
    return [
      `${name} was ${secretOf(entry)} itself${still}. It is not stored.`,
      'A token proves who sent the delivery, and nothing of what is in it.',
    ]
  const body =
    scheme.formSignature === 'payload' && isForm(lines)
      ? 'the payload inside the form'
      : 'the exact bytes of the body'
  const covers = proof.signed === '{body}' ? body : `${proof.signed}, where {body} is ${body},`
  const isNamedInside = isInBody(scheme.event.find((place) => isInBody(place) || lines.has(place)) ?? '')
  return [
    `${name} is the HMAC-${proof.algorithm.toUpperCase()} of ${covers} with ${secretOf(entry)}${still}.`,
    isNamedInside
      ? 'The body names the event, so that is proved too; headers are not signed.'
      : proof.signed === '{body}'
        ? 'It covers the body only: headers, and so the event and the delivery id, are not signed.'
        : 'The header that names the event is not signed.',
  ]
}

function restoration({ restored }: Entry): readonly string[] {
  if (!restored) return []
  return [
    `The tunnel had changed the body. Its bytes were restored (${restored.how}), and the signature proves that they are those that were sent.`,
    restored.unproved
      ? 'The event is not proved: the payload may also be of another.'
      : 'The payload proves the event that the headers name.',
  ]
}
