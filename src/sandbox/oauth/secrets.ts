import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'

/** Random string of 160 bits, as hex digits after `prefix`. */
export function randomSecret(prefix = ''): string {
  return prefix + randomBytes(20).toString('hex')
}

/** Compares two secrets in a time that does not depend on their contents or lengths. */
export function sameSecret(a: string, b: string): boolean {
  return timingSafeEqual(digest(a), digest(b))
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
