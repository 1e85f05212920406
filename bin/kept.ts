import {
  closeSync,
  existsSync,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
  type Stats,
} from 'node:fs'
import path from 'node:path'

/** A command keeps about 20 files, the service 100, of 40 kB on the average: that many versions of relay or Node fit. */
const MOST_FILES = 300

/** Before the data, its length; eight bytes, since V8 makes a copy of what does not begin at a multiple of them. */
const LENGTH_BYTES = 8

/** Data that can be made anew at any time, by name. Nothing of it fails: what cannot be read is not there. */
export interface Kept {
  read(name: string): Buffer | undefined
  /**
   * Writes what there is to write, each whole or not at all, whatever becomes of the others; `data` is called only where there
   * is a place to write it to.
   */
  write<Item>(items: ReadonlyMap<string, Item>, data: (item: Item) => Buffer): void
}

/**
 * Data kept in a folder, which is made, private (0700), by the first write. Code is run from it, so a folder or a file that is
 * not the user's own, or that others may write to, is not used.
 */
export function openKept(folder: string): Kept {
  const usable = isOwn(folder)
  return {
    read: (name) => (usable ? attempt(() => readFile(path.join(folder, name))) : undefined),
    write(items, data) {
      if (items.size === 0 || !makeOwn(folder)) return
      for (const [name, item] of items) attempt(() => writeFile(path.join(folder, name), data(item)))
      attempt(() => removeOldest(folder))
    },
  }
}

/** Makes the folder, private (0700), where it is missing; tells whether it is the user's own, and closed to others' writing. */
export function makeOwn(folder: string): boolean {
  attempt(() => makeFolder(folder))
  return isOwn(folder)
}

function isOwn(folder: string): boolean {
  return attempt(() => isOurs(lstatSync(folder))) === true
}

/**
 * In a folder of the user's only: under sudo the home may be another's, who could not write to what root makes there.
 * Not `recursive`: Node then tries for ever where a file system says ENOENT in a folder that is there, as procfs and autofs do.
 */
function makeFolder(folder: string): void {
  if (existsSync(folder)) return
  const parent = path.dirname(folder)
  if (folder !== parent) makeFolder(parent)
  if (!isOfUser(statSync(parent))) throw new Error(`${parent} is another user's`)
  mkdirSync(folder, { mode: 0o700 })
}

function readFile(file: string): Buffer | undefined {
  const fd = openSync(file, 'r')
  try {
    const stats = fstatSync(fd)
    if (!isOurs(stats)) return undefined
    const content = Buffer.allocUnsafeSlow(stats.size)
    return unpack(content.subarray(0, readSync(fd, content)))
  } finally {
    closeSync(fd)
  }
}

/**
 * Twice, since V8 would crash over data of which the disk has lost a part: that both are the same is seen in a tenth of a
 * millisecond, and to load a checksum takes two.
 */
function pack(data: Buffer): Buffer {
  const length = Buffer.alloc(LENGTH_BYTES)
  length.writeBigUInt64LE(BigInt(data.length))
  return Buffer.concat([length, data, data])
}

function unpack(content: Buffer): Buffer | undefined {
  const end = LENGTH_BYTES + Number(content.readBigUInt64LE())
  const data = content.subarray(LENGTH_BYTES, end)
  return content.length === end + data.length && content.subarray(end).equals(data) ? data : undefined
}

/** Others may be reading the file, or writing the same. */
function writeFile(file: string, data: Buffer): void {
  const unfinished = `${file}.${process.pid}`
  try {
    writeFileSync(unfinished, pack(data), { mode: 0o600, flag: 'wx' })
    renameSync(unfinished, file)
  } catch (error) {
    // Also what a process of the same number has left, as in containers: the next one finds the name free.
    rmSync(unfinished, { force: true })
    throw error
  }
}

function removeOldest(folder: string): void {
  const files = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isFile())
  if (files.length <= MOST_FILES) return
  const written = files.map(({ name }) => {
    const file = path.join(folder, name)
    return { file, at: statSync(file).mtimeMs }
  })
  for (const { file } of written.toSorted((a, b) => b.at - a.at).slice(MOST_FILES / 2)) rmSync(file)
}

/** Windows has no such modes; there the folder lies in the user's profile, which is closed to others. */
function isOurs(stats: Stats): boolean {
  if (process.geteuid === undefined) return true
  // A link may lead anywhere.
  const real = stats.isDirectory() || stats.isFile()
  return real && isOfUser(stats) && (stats.mode & 0o022) === 0
}

function isOfUser(stats: Stats): boolean {
  return process.geteuid === undefined || stats.uid === process.geteuid()
}

function attempt<T>(work: () => T): T | undefined {
  try {
    return work()
  } catch {
    return undefined
  }
}
