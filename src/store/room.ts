import { statfsSync } from 'node:fs'

/** 16 MiB: deleting needs room too, so without a reserve retention could not empty a full disk (measured: 40 of 40 failed). */
export const RESERVE = 16_777_216
/** What the log needs of it while deliveries go into free space within the file. */
const LOG_RESERVE = RESERVE / 4
/** The free space is looked up again after so many milliseconds, or so many bytes written: a quarter of the reserve. */
const LOOK_AGAIN_MS = 1000
const LOOK_AGAIN_BYTES = RESERVE / 4

/**
 * Returns a function that finds out whether there is room for `bytes` more without the reserve: in the file system of `folder`, or
 * within the database's file, where `freeWithin` bytes are free. It is cheap enough to call for each commit.
 */
export function createRoomCheck(folder: string, freeWithin: () => number): (bytes: number) => boolean {
  let written = Infinity
  let looked = -Infinity
  let hasRoom = true
  return (bytes) => {
    written += bytes
    const now = performance.now()
    if (written < LOOK_AGAIN_BYTES && now - looked < LOOK_AGAIN_MS) return hasRoom
    hasRoom = hasRoomFor(RESERVE + bytes, folder, freeWithin)
    written = 0
    looked = now
    return hasRoom
  }
}

function hasRoomFor(bytes: number, folder: string, freeWithin: () => number): boolean {
  try {
    const { bavail, bsize } = statfsSync(folder)
    const free = bavail * bsize
    return free >= bytes || (free >= LOG_RESERVE && freeWithin() >= bytes)
  } catch {
    // The write itself will say what is wrong.
    return true
  }
}
