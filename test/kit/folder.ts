import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'

/** Environment variables of a program; undefined removes one. */
export type Env = Readonly<Record<string, string | undefined>>

/** A new folder of the test's own; setup.ts removes all of them after the run. */
export function emptyFolder(): string {
  return mkdtempSync(path.join(tmpdir(), 'test-'))
}
