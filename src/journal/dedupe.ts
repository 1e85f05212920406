import { hash } from 'node:crypto'

import type { Delivery } from './delivery.js'

/**
 * The key under which a delivery is known: a digest of its hook id and delivery id. GitHub gives one event the same
 * delivery id for every hook that gets it, so the id alone would take two deliveries for one. A JSON array keeps
 * apart where the one ends and the other begins. Part of the file format.
 */
export function dedupeKey({ hookId, deliveryId }: Pick<Delivery, 'hookId' | 'deliveryId'>): string {
  return hash('sha256', JSON.stringify([hookId, deliveryId]), 'base64url')
}
