import { readdirSync, statSync } from 'node:fs'
import path from 'node:path'

/** Returns the bytes of the files in a profile's folder; 0 if it cannot be read. */
export function profileSize(folder: string): number {
  try {
    return readdirSync(folder)
      .map((name) => statSync(path.join(folder, name), { throwIfNoEntry: false })?.size ?? 0)
      .reduce((sum, size) => sum + size, 0)
  } catch {
    return 0
  }
}

const MIB = 1_048_576

export function describeSize(bytes: number): string {
  return bytes < MIB ? `${Math.ceil(bytes / 1024)} KiB` : `${(bytes / MIB).toFixed(1)} MiB`
}
