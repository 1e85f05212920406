import { renameSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { errorReason } from '../base/errno.js'
import { RelayError } from '../base/errors.js'
import { makeFolder } from '../store/make-folder.js'

/**
 * Writes a small file that only its owner can read (0600), and its folder. A reader sees the old file or the new one.
 * @throws RelayError `settings` when the folder cannot be made, `storage` when the file cannot be written.
 */
export function writeWhole(file: string, text: string): void {
  makeFolder(path.dirname(file))
  const draft = `${file}.draft`
  try {
    writeFileSync(draft, text, { mode: 0o600 })
    renameSync(draft, file)
  } catch (cause) {
    rmSync(draft, { force: true, recursive: true })
    const why = errorReason(cause)
    throw new RelayError('storage', `${file} cannot be written (${why})`, { cause })
  }
}
