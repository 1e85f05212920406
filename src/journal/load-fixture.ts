import { randomUUID } from 'node:crypto'
import { closeSync, createReadStream, fstatSync, openSync, readFileSync, readSync, statSync } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import path from 'node:path'
import { addAbortSignal, type Readable } from 'node:stream'
import type { Cancellable } from '../base/abort.js'
import { RelayError } from '../base/errors.js'
import { type Fixture, toFixture } from './fixture.js'
import { LARGEST_BODY } from './fixture-schema.js'
import { checkFixture, parseFixture, parseJson } from './parse-fixture.js'

export { parseFixture }

/** A body of control characters takes six times its size; a mebibyte more for all else. */
const LARGEST_FILE = 6 * LARGEST_BODY + 1_048_576

export interface LoadOptions extends Cancellable {
  /** What a file that holds a bare payload is: its event, and the provider it comes from (`github`). */
  readonly event?: string | undefined
  readonly provider?: string | undefined
  /** Where `-` reads. */
  readonly stdin?: Readable | undefined
}

export interface NamedFixture {
  /** The file as it was given, or found in a folder. */
  readonly name: string
  readonly fixture: Fixture
}

/**
 * Fixtures from files, from folders (every `*.json` in it and below, but for `*.schema.json`, in the order of their
 * names) and from standard input (`-`), one at a time. Any other JSON is a bare payload when `event` says of what; its
 * bytes are the body, and it gets an id of its own.
 * @throws RelayError `usage` naming the file: as {@link parseFixture}; not there, not readable, not UTF-8; or a folder
 * without fixtures; `too_large`; `cancelled`.
 */
export async function* loadFixtures(
  paths: readonly string[],
  options: LoadOptions = {},
): AsyncGenerator<NamedFixture> {
  for (const given of paths) {
    for (const file of await filesOf(given)) {
      const name = file.path === '-' ? 'standard input' : file.path
      yield { name, fixture: read(await readText(file, name, options), name, options) }
    }
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

function read(text: string, name: string, { event, provider = 'github' }: LoadOptions): Fixture {
  const json = text.replace(/^\uFEFF/, '')
  const value = parseJson(json, name)
  const isFixture = typeof value === 'object' && value !== null && 'relay' in value
  if (isFixture) return checkFixture(value, json, name)
  if (event === undefined)
    throw new RelayError(
      'usage',
      `${name}: not a fixture but a bare payload, which holds no signature; to send it, give its event, as with --event push`,
    )
  const headers = [['Content-Type', 'application/json']] as const
  return toFixture({ provider, event, deliveryId: randomUUID(), headers, body: Buffer.from(text) })
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

async function readText(
  { path: file, isRegular }: File,
  name: string,
  options: LoadOptions,
): Promise<string> {
  const { signal } = options
  try {
    signal?.throwIfAborted()
    // A link is looked through here, and only here: to open a pipe just to see that it is one would take it from its writer.
    const bytes =
      isRegular || (file !== '-' && statSync(file).isFile())
        ? readRegular(file, name)
        : await readBytes(sourceOf(file, options), name)
    return utf8.decode(bytes)
  } catch (cause) {
    if (signal?.aborted) throw cause
    throw unreadable(name, cause)
  }
}

/** Files up to this size, 64 KiB, are read into the same memory, each before the next. */
const memory = Buffer.allocUnsafe(65_536)

/** Thousands of small files are read in a quarter of the time that streams of them take. */
function readRegular(file: string, name: string): Uint8Array {
  const opened = openSync(file, 'r')
  try {
    const { size } = fstatSync(opened)
    if (size > LARGEST_FILE) throw tooLarge(name)
    const isSmall = size <= memory.length && readSync(opened, memory, 0, size, 0) === size
    // What the system itself makes up, as in /proc, has the size 0.
    return isSmall && size > 0 ? memory.subarray(0, size) : readFileSync(opened)
  } finally {
    closeSync(opened)
  }
}

function sourceOf(file: string, { stdin, signal }: LoadOptions): AsyncIterable<Uint8Array> {
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
