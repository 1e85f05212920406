import { secretWords, shownSource } from '../base/source-names.js'
import { formatDuration } from '../base/time.js'
import { senderOf } from '../senders/senders.js'
import { editedFrom, type Entry, LATE_HEADER, type Summary } from '../journal/types.js'
import { forwardedRequest } from '../replay/prepare.js'
import type { ProofDetail } from './api.js'
import type { InspectorParts } from './parts.js'

type Verified = Pick<Summary, 'provider' | 'verifiedBy'>

/** Formats the short verdict of a delivery. */
export function verdictOf(summary: Verified & Pick<Summary, 'restored' | 'headers'>): string {
  const { verifiedBy, restored } = summary
  const from = editedFrom(summary)
  const secret = `the ${secretWords(summary.provider, verifiedBy)}`
  const signed = verifiedBy === 'none' ? 'not signed: its source has no secret' : `signed with ${secret}`
  if (from !== undefined) return `edited copy of #${from}, ${signed}`
  if (verifiedBy === 'none') return 'not verified: its source proves nothing'
  const restoration = restored
    ? `, its bytes restored (${restored.how})${restored.unproved ? ', its event not proved' : ''}`
    : ''
  return `verified with ${secret}${restoration}`
}

/** Describes the proof of a delivery, and what happens to its signature when it is sent again. */
export function describeProof(entry: Entry, { sources, clock }: InspectorParts): ProofDetail {
  const { provider, verifiedBy, scheme = provider } = entry
  const again = forwardedRequest(entry, sources.get(provider), clock())
  const words = `the ${secretWords(provider, verifiedBy)}`
  const { proof, tolerance, made, eventIn } = senderOf(scheme).describe(entry, { verifiedBy, words })
  // The name in the journal of another source's event has the action, too.
  const isWhole = shownSource(provider) === undefined ? eventIn !== 'body' : eventIn === 'header'
  return {
    proof: [...proof, ...restoration(entry)],
    again: again.isRenewed
      ? `${provider} accepts a signature for ${formatDuration(tolerance)}, so the target gets this delivery with a new time and signature.`
      : again.isLate
        ? `${provider} accepts a signature for ${formatDuration(tolerance)}, and only its sender has the key: the target gets this delivery as it came, marked with ${LATE_HEADER}.`
        : 'The target gets the same bytes once more, even if it succeeded there.',
    made,
    hasEventHeader: isWhole,
  }
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
