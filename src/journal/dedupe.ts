import type { Delivery } from './delivery.js'

/**
 * The key under which a delivery is known: its hook id and delivery id. GitHub gives one event the same delivery id for every
 * hook that gets it, so the id alone would take two deliveries for one. No id has a space in it. Part of the file format.
 *
 * As they are, and no digest of them: an id that begins with the time, as GitHub's do, comes to lie beside the one before it,
 * so that those of a burst are written to the same page.
 *
 * One that came through a tunnel is known by what was signed: the ids are not signed, and whoever knows the tunnel's address
 * could send a body again under others, or spoil an id before the delivery comes that has it.
 */
export function dedupeKey({
  hookId,
  deliveryId,
  restored,
}: Pick<Delivery, 'hookId' | 'deliveryId' | 'restored'>): string {
  if (restored) return `body:${restored.sha256}`
  return `${hookId} ${deliveryId}`
}
