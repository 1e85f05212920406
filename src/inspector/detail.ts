import { isUtf8 } from 'node:buffer'
import { RelayError } from '../base/errors.js'
import { formatStatus, labelOf, routesFor } from '../dispatch/routes.js'
import type { Entry, Restored, Summary, VerifiedBy } from '../journal/types.js'
import type { Attempt } from '../journal/types.js'
import { readPayload } from '../journal/payload.js'
import { HUB_SIGNATURE } from '../codehost/hub-signature.js'
import type { AttemptLine, DeliveryDetail } from './api.js'
import { linesOf, targetNames } from './lines.js'
import type { InspectorParts } from './parts.js'
import { publicId } from './target-ids.js'

type DetailParts = Pick<InspectorParts, 'journal' | 'routing' | 'running' | 'host'>

/** An entry with its body. @throws RelayError `not_found` when the journal does not have it, or no longer. */
export async function findEntry({ journal }: Pick<DetailParts, 'journal'>, n: number): Promise<Entry> {
  const entry = await journal.read(n)
  if (entry) return entry
  const isOver = n <= (await journal.newest())
  throw new RelayError(
    'not_found',
    isOver ? `#${n} was removed by retention (--keep, --keep-max)` : `There is no #${n}`,
  )
}

/** All of one delivery. @throws RelayError `not_found` */
export async function describeDelivery(parts: DetailParts, n: number): Promise<DeliveryDetail> {
  const { journal, routing } = parts
  const entry = await findEntry(parts, n)
  const [[summary], attempts, older, newer] = await Promise.all([
    journal.summaries([n]),
    journal.attempts(n),
    numberBefore(journal, n),
    journal.after(n, 1),
  ])
  const [line] = summary ? await linesOf(parts, [summary]) : []
  if (!summary || !line) return describeDelivery(parts, n)
  const nameOf = targetNames(parts, [summary])
  const { provider, deliveryId, hookId, verifiedBy, restored, headers } = entry
  const bytes = Buffer.from(entry.body)
  return {
    ...line,
    provider,
    deliveryId,
    hookId,
    verifiedBy,
    proof: proofOf(summary, parts),
    restored: restored ? { how: restored.how, unproved: restored.unproved === true } : null,
    headers,
    body: isUtf8(bytes) ? bytes.toString() : null,
    json: readPayload(entry)?.text ?? null,
    attempts: attempts.map((attempt) => attemptLine(attempt, nameOf)),
    routes: routesFor(routing.routes, routing.ignore, entry).map(({ id }) => ({
      id: publicId(id),
      name: nameOf(id),
      label: labelOf(id),
    })),
    older,
    newer: newer[0]?.n ?? null,
  }
}

async function numberBefore(journal: DetailParts['journal'], n: number): Promise<number | null> {
  for await (const summary of journal.select({ before: n, last: 1 })) return summary.n
  return null
}

function attemptLine(attempt: Attempt, nameOf: (id: string) => string): AttemptLine {
  const { at, target, outcome, status, ms, count, error, headers = [] } = attempt
  const answer = Buffer.from(attempt.answer)
  return {
    at,
    target: nameOf(target),
    outcome,
    status: status === null ? null : formatStatus(target, status),
    ms,
    count,
    error,
    headers,
    answer: answer.toString(),
    answerIsText: isUtf8(answer),
  }
}

const SECRETS: Readonly<Record<VerifiedBy, string>> = {
  current: 'the current webhook secret',
  previous: 'the previous webhook secret, which is still accepted',
}

/** How a delivery was proved genuine, sentence by sentence. */
function proofOf(
  { verifiedBy, restored, headers }: Pick<Summary, 'verifiedBy' | 'restored' | 'headers'>,
  { host }: Pick<DetailParts, 'host'>,
): readonly string[] {
  const isForm = headers.some(
    ([name, value]) => /^content-type$/i.test(name) && /x-www-form-urlencoded/i.test(value),
  )
  const covers =
    isForm && host.webhook.formSignature === 'payload'
      ? 'the payload inside the form'
      : 'the exact bytes of the body'
  // As it was sent. Gitea sends another one too, which relay does not use.
  const [signature] = headers.find(([name]) => name.toLowerCase() === HUB_SIGNATURE) ?? [HUB_SIGNATURE]
  return [
    `${signature} is the HMAC-SHA256 of ${covers} with ${SECRETS[verifiedBy]}.`,
    'It covers the body only: headers, and so the event and the delivery id, are not signed.',
    ...(restored ? restorationOf(restored) : []),
  ]
}

function restorationOf({ how, unproved }: Restored): readonly string[] {
  return [
    `The tunnel had changed the body. Its bytes were restored (${how}), and the signature proves that they are those that were sent.`,
    unproved
      ? 'The event is not proved: the payload may also be of another.'
      : 'The payload proves the event that the headers name.',
  ]
}
