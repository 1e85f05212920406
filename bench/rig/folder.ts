import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'

export interface Folder extends Disposable {
  readonly path: string
}

/** An empty folder that is deleted on disposal: a benchmark can write gigabytes. */
export function temporaryFolder(): Folder {
  const folder = mkdtempSync(path.join(tmpdir(), 'relay-bench-'))
  return { path: folder, [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }) }
}
