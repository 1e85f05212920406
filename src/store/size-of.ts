import type { Step } from './sql.js'

/** Characters and bytes of all values of these steps: about what they take in memory and on disk. */
export function sizeOf(steps: readonly Step[]): number {
  let size = 0
  for (const { values = [] } of steps)
    for (const value of values)
      if (typeof value === 'string' || value instanceof Uint8Array) size += value.length
  return size
}
