import { fstatSync, statSync, writeFileSync } from 'node:fs'
import { devNull } from 'node:os'
import type { TextStream } from '../src/cli/context.js'

/**
 * Standard output (1) or error (2). Its stream is opened when it is first used, and not at all for a file, which is written to
 * as Node's stream would: to load what streams and terminals need takes milliseconds. `onError` is called when it cannot be
 * written to any more.
 */
export function openStandard(fd: 1 | 2, onError: () => void): TextStream {
  return isFile(fd) ? fileAt(fd, onError) : streamAt(fd, onError)
}

function fileAt(fd: number, onError: () => void): TextStream {
  return {
    write(text) {
      try {
        writeFileSync(fd, text)
      } catch {
        onError()
      }
    },
  }
}

function streamAt(fd: 1 | 2, onError: () => void): TextStream {
  let opened: NodeJS.WriteStream | undefined
  const stream = (): NodeJS.WriteStream =>
    (opened ??= (fd === 1 ? process.stdout : process.stderr).on('error', onError))
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

/** Of what else there is, a terminal has a width, and a pipe may be full. */
function isFile(fd: number): boolean {
  const stats = fstatSync(fd)
  return stats.isFile() || (stats.isCharacterDevice() && stats.rdev === nullDevice())
}

/** Windows has none that can be looked at. */
function nullDevice(): number | undefined {
  return statSync(devNull, { throwIfNoEntry: false })?.rdev
}
