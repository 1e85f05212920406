import { RelayError } from '../base/errors.js'
import type { Delivery } from './delivery.js'

/**
 * How an entry is kept, apart from its body's bytes. Part of the file format: readers meet what older versions of relay
 * wrote, so a field may be added but never changed.
 */
export type Meta = Omit<Delivery, 'body'> & {
  readonly v: 1
  /** Bytes of the body, so that keeping to a size limit reads no bodies. */
  readonly size: number
}

export function toMeta({ body, ...delivery }: Delivery): Meta {
  return { v: 1, ...delivery, size: body.byteLength }
}

/** @throws RelayError `storage` for an entry of a later format. */
export function fromMeta(n: number, meta: Meta): Omit<Delivery, 'body'> & Pick<Meta, 'size'> {
  const { v, ...delivery } = meta
  if (v !== 1) throw new RelayError('storage', `Journal entry ${n} was written by a newer version of relay`)
  return delivery
}
