import { existsSync } from 'node:fs'
import path from 'node:path'

export const PROJECT_FILE = 'relay.json'

/**
 * The project's settings file: the nearest `relay.json` from the working folder up to the root of its git checkout. A
 * folder in no checkout is asked alone, so that nobody's file in a shared folder above it counts.
 */
export function findProjectFile(cwd: string): string | undefined {
  return projectFolders(cwd)
    .map((folder) => path.join(folder, PROJECT_FILE))
    .find((file) => existsSync(file))
}

/** Where the project's settings file may lie, the nearest folder first. */
export function projectFolders(cwd: string): string[] {
  return upToCheckout(path.resolve(cwd))
}

function upToCheckout(cwd: string): string[] {
  const folders: string[] = []
  for (let folder = cwd; ; folder = path.dirname(folder)) {
    folders.push(folder)
    if (existsSync(path.join(folder, '.git'))) return folders
    if (folder === path.dirname(folder)) return [cwd]
  }
}
