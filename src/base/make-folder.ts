import { lstatSync, mkdirSync, statSync } from 'node:fs'
import path from 'node:path'
import { errorReason, RelayError } from './errors.js'

/**
 * Makes a folder for its owner alone (0700), with those above it that are missing.
 * Not by `mkdir`'s `recursive`: Node 20 then tries for ever where a file system says ENOENT in a folder that is there, as
 * procfs and autofs do (measured). This makes one attempt for each name in the path.
 * @throws RelayError `settings` that names what cannot be made, why, and what to do.
 */
export function makeFolder(folder: string): void {
  if (isFolder(folder)) return
  const parent = path.dirname(folder)
  if (parent !== folder) makeFolder(parent)
  try {
    mkdirSync(folder, { mode: 0o700 })
  } catch (cause) {
    // Another process may have made it meanwhile.
    if (isFolder(folder)) return
    throw new RelayError(
      'settings',
      `The folder ${folder} cannot be made: ${reason(folder, cause)}. Set RELAY_HOME to a folder that you can write to`,
      { cause },
    )
  }
}

function isFolder(file: string): boolean {
  try {
    return statSync(file).isDirectory()
  } catch {
    return false
  }
}

const REASONS: Readonly<Record<string, string>> = {
  EACCES: 'you have no permission to write there',
  EPERM: 'you have no permission to write there',
  EROFS: 'the file system is read-only',
  ENOENT: 'the file system takes no new folders there',
  ENOSPC: 'the disk is full',
}

function reason(folder: string, cause: unknown): string {
  const code = errorReason(cause)
  if (code !== 'EEXIST') return REASONS[code] ?? code
  return lstatSync(folder).isSymbolicLink() ? 'it is a link to what is not a folder' : 'it is not a folder'
}
