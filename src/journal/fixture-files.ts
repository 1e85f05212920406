import {
  closeSync,
  constants,
  createReadStream,
  fstatSync,
  openSync,
  readFileSync,
  readSync,
  statSync,
} from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import path from 'node:path'
import { addAbortSignal, type Readable } from 'node:stream'
import type { Cancellable } from '../base/abort.js'
import { RelayError } from '../base/errors.js'
import { LARGEST_BODY } from './fixture-schema.js'

/** A body of control characters takes six times its size; a mebibyte more for all else. */
const LARGEST_FILE = 6 * LARGEST_BODY + 1_048_576

export interface FindOptions extends Cancellable {
  /** Where `-` reads. */
  readonly stdin?: Readable | undefined
}

/** A file that is there, and may not have been read yet. */
export interface FoundFile {
  /** As it was given, or found in a folder. */
  readonly name: string
  /** Whether it has been read, since it can be read only once. */
  readonly isRead: boolean
  /** What it holds, with a byte order mark if there is one. @throws RelayError as {@link findFiles} */
  readonly text: () => string
}

/**
 * What a path names: standard input (`-`), a file, or of a folder every `*.json` in it and below, but for `*.schema.json`, in
 * the order of their names. Regular files are read when their text is asked for; what can be read only once, as a pipe can, here.
 * @throws RelayError `usage` naming the file: not there, not readable, not UTF-8; or a folder without such files; `too_large`;
 * and the signal's reason.
 */
export async function* findFiles(given: string, options: FindOptions = {}): AsyncGenerator<FoundFile> {
  for (const file of await filesOf(given)) {
    options.signal?.throwIfAborted()
    yield await find(file, file.path === '-' ? 'standard input' : file.path, options)
  }
}

async function find(file: File, name: string, options: FindOptions): Promise<FoundFile> {
  if (isRegular(file, name))
    return { name, isRead: false, text: () => decode(readRegular(file.path, name), name) }
  const bytes = await readOnce(file.path, name, options)
  return { name, isRead: true, text: () => decode(bytes, name) }
}

/** A link is looked through here, and only here: to open a pipe just to see that it is one would take it from its writer. */
function isRegular({ path: file, isRegular: known }: File, name: string): boolean {
  if (known || file === '-') return known
  try {
    return statSync(file).isFile()
  } catch (cause) {
    throw unreadable(name, cause)
  }
}

async function readOnce(file: string, name: string, options: FindOptions): Promise<Uint8Array> {
  try {
    return await readBytes(sourceOf(file, options), name)
  } catch (cause) {
    if (options.signal?.aborted) throw cause
    throw unreadable(name, cause)
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

function decode(bytes: Uint8Array, name: string): string {
  try {
    return utf8.decode(bytes)
  } catch (cause) {
    throw unreadable(name, cause)
  }
}

interface File {
  readonly path: string
  /** Whether it is known to be no pipe, device or the like. */
  readonly isRegular: boolean
}

async function filesOf(given: string): Promise<File[]> {
  if (given === '-') return [{ path: given, isRegular: false }]
  try {
    const about = await stat(given)
    if (!about.isDirectory()) return [{ path: given, isRegular: about.isFile() }]
    const found = await readdir(given, { recursive: true, withFileTypes: true })
    const entries = found.filter((entry) => !entry.isDirectory() && /(?<!\.schema)\.json$/.test(entry.name))
    if (entries.length === 0) throw new RelayError('usage', `${given}: has no fixtures (*.json)`)
    const files = new Map(
      entries.map((entry) => [path.join(entry.parentPath, entry.name), entry.isFile()] as const),
    )
    return [...files.keys()].toSorted().map((file) => ({ path: file, isRegular: files.get(file) === true }))
  } catch (cause) {
    throw unreadable(given, cause)
  }
}

/** Files up to this size, 64 KiB, are read into the same memory, each before the next. */
const memory = Buffer.allocUnsafe(65_536)

/**
 * Thousands of small files are read in a quarter of the time that streams of them take. What was a file when it was found may be
 * a pipe by now, which nobody may ever write to, or a device, which may have no end.
 */
function readRegular(file: string, name: string): Uint8Array {
  try {
    const opened = openSync(file, constants.O_RDONLY | WITHOUT_WAITING)
    try {
      return readOpened(opened, name)
    } finally {
      closeSync(opened)
    }
  } catch (cause) {
    throw unreadable(name, cause)
  }
}

/** Windows has no pipes among its files. */
const WITHOUT_WAITING = process.platform === 'win32' ? 0 : constants.O_NONBLOCK

function readOpened(opened: number, name: string): Uint8Array {
  const about = fstatSync(opened)
  if (!about.isFile() && !about.isDirectory()) throw new RelayError('usage', `${name}: not a file any more`)
  const { size } = about
  if (size > LARGEST_FILE) throw tooLarge(name)
  const isSmall = size <= memory.length && readSync(opened, memory, 0, size, 0) === size
  // What the system itself makes up, as in /proc, has the size 0.
  return isSmall && size > 0 ? memory.subarray(0, size) : readFileSync(opened)
}

function sourceOf(file: string, { stdin, signal }: FindOptions): AsyncIterable<Uint8Array> {
  const source = file === '-' ? stdin : createReadStream(file)
  if (!source) throw new RelayError('usage', 'There is no standard input to read')
  return signal ? addAbortSignal(signal, source) : source
}

function tooLarge(name: string): RelayError {
  return new RelayError('too_large', `${name}: too large for a fixture`)
}

async function readBytes(source: AsyncIterable<Uint8Array>, name: string): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of source) {
    size += chunk.length
    if (size > LARGEST_FILE) throw tooLarge(name)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

function unreadable(name: string, cause: unknown): unknown {
  if (cause instanceof RelayError) return cause
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : 'unknown reason'
  const why: Record<string, string> = {
    ENOENT: 'no such file or folder',
    ERR_ENCODING_INVALID_ENCODED_DATA: 'not UTF-8',
  }
  return new RelayError('usage', `${name}: ${why[code] ?? `cannot be read (${code})`}`, { cause })
}
