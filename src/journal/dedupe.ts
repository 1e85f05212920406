import { hash } from 'node:crypto'

import type { Delivery } from './delivery.js'

/**
 * The key under which a delivery is known: a digest of its hook id and delivery id. GitHub gives one event the same
 * delivery id for every hook that gets it, so the id alone would take two deliveries for one. A JSON array keeps
 * apart where the one ends and the other begins. Part of the file format.
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
  return hash('sha256', JSON.stringify([hookId, deliveryId]), 'base64url')
}
