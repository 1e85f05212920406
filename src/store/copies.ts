import { readdirSync } from 'node:fs'
import path from 'node:path'

/** Name of a database file's copy that is made before its data is migrated from this version. */
export function copyName(file: string, version: number): string {
  return `${file}.version-${version}`
}

/** Copies of a database file, including unfinished ones. */
export function copiesOf(file: string): readonly string[] {
  const folder = path.dirname(file)
  const start = `${path.basename(file)}.version-`
  try {
    return readdirSync(folder)
      .filter((name) => name.startsWith(start))
      .map((name) => path.join(folder, name))
  } catch {
    return []
  }
}
