import { fstatSync, statSync, type Stats, writeFileSync } from 'node:fs'
import { devNull } from 'node:os'
import type { TextStream } from '../src/cli/context.js'

/**
 * Standard output (1) or error (2). Its stream is opened when it is first needed, and not at all for a file, which is written to
 * as Node's stream would: to load what streams and terminals need takes milliseconds. `onError` is called with what it
 * could not be written for.
 */
export function openStandard(fd: 1 | 2, onError: (error: NodeJS.ErrnoException) => void): TextStream {
  const stats = fstatSync(fd)
  if (stats.isFile() || isNull(stats)) return fileAt(fd, onError)
  const stream = once(() => (fd === 1 ? process.stdout : process.stderr).on('error', onError))
  // Nothing else can be a terminal.
  return stats.isCharacterDevice() ? terminal(stream) : { write: (text) => stream().write(text) }
}

function fileAt(fd: number, onError: (error: NodeJS.ErrnoException) => void): TextStream {
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

function terminal(stream: () => NodeJS.WriteStream): TextStream {
  return {
    get isTTY() {
      return stream().isTTY
    },
    get columns() {
      return stream().columns
    },
    write: (text) => stream().write(text),
  }
}

/** Not told on Windows, where it is no file that could be looked at. */
function isNull(stats: Stats): boolean {
  return process.platform !== 'win32' && stats.isCharacterDevice() && stats.rdev === statSync(devNull).rdev
}

function once<T>(make: () => T): () => T {
  let made: T | undefined
  return () => (made ??= make())
}
