import { chmodSync, mkdtempSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'

/** All that a run of the tests leaves behind, and the programs it starts, is in one folder, which goes with the run. */
export default function setup(): () => Promise<void> {
  const folder = mkdtempSync(path.join(tmpdir(), 'relay-'))
  // The database runs as another user, whose folder is in this one.
  chmodSync(folder, 0o711)
  process.env['TMPDIR'] = folder
  return () => rm(folder, { recursive: true, force: true, maxRetries: 5 })
}
