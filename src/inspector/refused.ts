import { shownSource } from '../base/source-names.js'
import { RelayError } from '../base/errors.js'
import { provenElsewhere } from '../senders/source.js'
import type { ListedKind, RefusedRequest } from '../webhook/refused.js'
import { MAX_EXPLAINED } from '../webhook/refusals.js'
import type { RefusedDetail, RefusedLine, RefusedPage } from './api.js'
import type { InspectorParts } from './parts.js'

/** Kinds whose reason is not found in a signature. */
const NOT_OF_SIGNATURE: ReadonlySet<ListedKind> = new Set([
  'too_large',
  'wrong_path',
  'handshake',
  'question',
])

/** Lists the refused requests, newest first. */
export async function listRefused({ refusals: { list } }: InspectorParts): Promise<RefusedPage> {
  return { refused: await Promise.all(list.list().toReversed().map(lineOf)), counts: list.counts() }
}

/** Describes one refused request, as far as it was stored. @throws RelayError `not_found` */
export async function describeRefused(parts: InspectorParts, id: number): Promise<RefusedDetail> {
  const refused = parts.refusals.list.get(id)
  if (!refused)
    throw new RelayError(
      'not_found',
      `Refused request ${id} is no longer in the list, which has the last 100`,
    )
  const { headers, body, size, source } = refused
  const shown = parts.sources.get(source)?.sender.hideSecrets(body, 'show') ?? body
  return {
    ...(await lineOf(refused)),
    headers,
    body: Buffer.from(shown).toString(),
    isCut: body.length < size,
    verdict: await verdictOf(refused, parts),
  }
}

async function lineOf(refused: RefusedRequest): Promise<RefusedLine> {
  const { id, at, via, source, status, kind, event, deliveryId, size, reason } = refused
  const line = { id, at, via, status, kind, event, deliveryId, size, reason: await reason() }
  return shownSource(source) === undefined ? line : { ...line, source }
}

/**
 * Explains a refused request as `relay verify` does, line by line. If the signed bytes are not known (the body was not
 * stored whole, or a tunnel changed it), only the reason found at its arrival is given.
 */
async function verdictOf(
  refused: RefusedRequest,
  { sources, command }: InspectorParts,
): Promise<readonly string[]> {
  const { via, body, size, kind, status } = refused
  const answered =
    via === 'tunnel' ? 'It came through the tunnel and was not taken.' : `It was answered ${status}.`
  const reason = sentence(await refused.reason())
  if (NOT_OF_SIGNATURE.has(kind)) return [reason, answered]
  if (via === 'tunnel' || body.length < size)
    return [
      reason,
      'The bytes that were signed are not known, so the signature cannot be checked again.',
      answered,
    ]
  if (body.length > MAX_EXPLAINED)
    return [
      reason,
      `Its body is too large to analyse here: ${command(`verify refused:${refused.id}`)} does that.`,
      answered,
    ]
  const source = sources.get(refused.source)
  const explanation = source && (await source.sender.explain(refused, source.secrets, refused.at))
  if (!explanation || (!explanation.valid && explanation.reason === 'unverifiable'))
    return [reason, 'Its token is not stored, so it cannot be checked again.', answered]
  const elsewhere =
    source && !explanation.valid ? provenElsewhere(refused, source.name, sources.values()) : undefined
  if (elsewhere !== undefined) return [sentence(elsewhere), answered]
  if (!explanation.valid) {
    const { reason: why, hint } = explanation
    const isWhole = why === 'stale' || kind === 'no_signature'
    return [sentence(isWhole ? hint : `The signature does not match: ${hint}`), answered]
  }
  return ['The signature matches.', reason, answered]
}

/** Makes a sentence of a reason, which begins in lower case and has no full stop, since log lines continue after it. */
function sentence(text: string): string {
  const start = text.charAt(0).toUpperCase() + text.slice(1)
  return /[.?!]$/.test(start) ? start : `${start}.`
}
