import { randomUUID } from 'node:crypto'
import { RelayError } from '../base/errors.js'
import { type Fixture, toFixture } from './fixture.js'
import { findFiles, type FindOptions, type FoundFile } from './fixture-files.js'
import { checkFixture, parseFixture, parseJson } from './parse-fixture.js'

export { parseFixture }

export interface LoadOptions extends FindOptions {
  /** What a file that holds a bare payload is: its event, and the provider it comes from (`github`). */
  readonly event?: string | undefined
  readonly provider?: string | undefined
}

export interface NamedFixture {
  /** The file as it was given, or found in a folder. */
  readonly name: string
  readonly fixture: Fixture
}

/** A fixture that is there, and may not have been read yet. */
export interface FoundFixture {
  /** The file as it was given, or found in a folder. */
  readonly name: string
  /** Reads and checks it. @throws RelayError as {@link loadFixtures} */
  readonly load: () => Fixture
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
  for await (const { name, load } of findFixtures(paths, options)) yield { name, fixture: load() }
}

/**
 * The same, of which regular files are read when they are loaded. What can be read only once, as a pipe can, is read and
 * checked here.
 * @throws RelayError as {@link loadFixtures}
 */
export async function* findFixtures(
  paths: readonly string[],
  options: LoadOptions = {},
): AsyncGenerator<FoundFixture> {
  for (const given of paths) {
    for await (const file of findFiles(given, options)) yield found(file, options)
  }
}

function found({ name, isRead, text }: FoundFile, options: LoadOptions): FoundFixture {
  if (!isRead) return { name, load: () => read(text(), name, options) }
  const fixture = read(text(), name, options)
  return { name, load: () => fixture }
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
