import { mkdtempSync, readdirSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'

/** Environment variables of a program; undefined removes one. */
export type Env = Readonly<Record<string, string | undefined>>

/** A new folder of the test's own; setup.ts removes all of them after the run. */
export function emptyFolder(): string {
  return mkdtempSync(path.join(tmpdir(), 'test-'))
}

/** All that lies below a folder, as one text of one character for each byte. `skip`: names of files that do not count. */
export function contentsOf(folder: string, skip?: RegExp): string {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile() && !skip?.test(entry.name))
  return files.map(({ parentPath, name }) => readFileSync(path.join(parentPath, name), 'latin1')).join('\n')
}
