import type { Sql } from '../store/sql.js'
import type { Delivery } from './delivery.js'

/**
 * The key under which a delivery is known: its hook id and delivery id. GitHub gives one event the same delivery id for every
 * hook that gets it, so the id alone would take two deliveries for one. No id has a space in it. Part of the file format.
 *
 * The ids themselves, not a digest: an id that begins with the time, as GitHub's do, is stored next to the one before it,
 * so that a burst is written to one page.
 *
 * One that came through a tunnel is known by what was signed: the ids are not signed, and anyone with the tunnel's address
 * could send a body again under others, or spoil an id before the delivery comes that has it. Where the payload does not
 * prove the event, the event takes part, so that a copy under another does not take the place of the genuine one. Where the
 * code host can send the same bytes again for something new, the id does; see {@link findKey}.
 */
export function dedupeKey({
  hookId,
  deliveryId,
  event,
  restored,
}: Pick<Delivery, 'hookId' | 'deliveryId' | 'event' | 'restored'>): string {
  if (!restored) return `${hookId} ${deliveryId}`
  const { sha256, unproved, repeatable } = restored
  if (unproved) return `body:${sha256} ${event}`
  return repeatable ? `body:${sha256} ${deliveryId}` : `body:${sha256}`
}

/**
 * One minute: within it, equal bytes under another id count as a copy. The bytes hold neither a time nor an id (`workflow_dispatch`,
 * `ping`), so nothing else distinguishes a second press of a button from a stranger's copy of the first.
 */
export const ALIKE_MS = 60_000

/**
 * The key of a delivery: its own, or that of an entry with the same repeatable bytes that came under another id within
 * {@link ALIKE_MS}.
 */
export async function findKey(sql: Pick<Sql, 'query'>, delivery: Delivery): Promise<string> {
  const key = dedupeKey(delivery)
  const { receivedAt, restored } = delivery
  if (!restored) return key
  // The keys that begin with the digest and a space: `!` is the next character.
  const [alike] = await sql.query<{ key: string }>(
    `SELECT dedupe_key AS key FROM delivery WHERE dedupe_key > ? AND dedupe_key < ?
      AND (dedupe_key = ? OR received_at BETWEEN ? AND ?)
      ORDER BY CASE WHEN dedupe_key = ? THEN 0 ELSE 1 END, received_at DESC LIMIT 1`,
    [
      `body:${restored.sha256} `,
      `body:${restored.sha256}!`,
      key,
      receivedAt - ALIKE_MS,
      receivedAt + ALIKE_MS,
      key,
    ],
  )
  return alike?.key ?? key
}
