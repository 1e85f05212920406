import { randomBytes } from 'node:crypto'

/** A string nobody can guess: 160 bits, as hex digits behind a prefix. */
export function unguessable(prefix = ''): string {
  return prefix + randomBytes(20).toString('hex')
}
