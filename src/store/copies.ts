import { readdirSync } from 'node:fs'
import path from 'node:path'

/** The copy of a database file that is kept while its data is brought from this version to a later one. */
export function copyName(file: string, version: number): string {
  return `${file}.version-${version}`
}

/** The copies of a database file, also those that were not finished. */
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
