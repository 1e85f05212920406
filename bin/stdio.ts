import { fstatSync, writeFileSync } from 'node:fs'
import type { TextStream } from '../src/cli/context.js'

/**
 * Opens standard output (1) or standard error (2). A file is written with `writeFileSync`: on a full disk, Node 20's stream for
 * files writes part of the text and silently loses the rest (measured).
 * @param onError called with each failure to write
 */
export function openStdio(fd: 1 | 2, onError: (error: NodeJS.ErrnoException) => void): TextStream {
  if (!fstatSync(fd).isFile()) return (fd === 1 ? process.stdout : process.stderr).on('error', onError)
  return {
    write(text) {
      try {
        writeFileSync(fd, text)
      } catch (error) {
        onError(error instanceof Error ? error : new Error(String(error)))
      }
    },
  }
}
