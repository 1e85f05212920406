import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'

/** All that a run of the tests leaves behind, and the programs it starts, is in one folder, which goes with the run. */
export default function setup(): () => void {
  const folder = mkdtempSync(path.join(tmpdir(), 'relay-tests-'))
  // The database runs as another user, whose folder is in this one.
  chmodSync(folder, 0o711)
  process.env['TMPDIR'] = folder
  return () => rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
}
