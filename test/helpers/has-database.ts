import { readdirSync, readlinkSync } from 'node:fs'
import type { Program } from './program.js'

/** Whether a process has a database open. */
export function hasDatabase({ pid }: Pick<Program, 'pid'>): boolean {
  const folder = `/proc/${pid}/fd`
  return readdirSync(folder).some((name) => /\/relay\.\w+$/.test(linkAt(`${folder}/${name}`)))
}

/** Empty where it has been closed. */
function linkAt(file: string): string {
  try {
    return readlinkSync(file)
  } catch {
    return ''
  }
}
