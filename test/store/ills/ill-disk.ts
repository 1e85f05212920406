import { execFileSync } from 'node:child_process'
import { renameSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { emptyFolder } from '../../helpers/context.js'

/** `slow <ms>`: every flush of the database's files takes that long; `error <file>`: flushes and writes of that one fail with EIO. */
export type Illness = `slow ${number}` | 'error relay.db' | 'error relay.db-wal' | 'none'

export interface IllDisk {
  /** The command that starts a program on this disk. */
  readonly wrapper: readonly string[]
  readonly set: (illness: Illness) => void
}

/** A disk that is well at first. */
export function illDisk(): IllDisk {
  const folder = emptyFolder()
  const source = fileURLToPath(new URL('../programs/ill-disk.c', import.meta.url))
  const library = path.join(folder, 'ill-disk.so')
  const control = path.join(folder, 'illness')
  execFileSync('gcc', ['-shared', '-fPIC', '-o', library, source])
  return {
    wrapper: ['env', `LD_PRELOAD=${library}`, `ILL_DISK=${control}`],
    set(illness) {
      // In one step: the program never reads half of it.
      writeFileSync(`${control}.new`, illness)
      renameSync(`${control}.new`, control)
    },
  }
}
