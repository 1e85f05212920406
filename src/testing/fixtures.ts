import path from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Cancellable } from '../base/abort.js'
import { RelayError } from '../base/errors.js'
import type { ProviderName } from '../base/settings.js'
import type { Fixture } from '../fixtures/fixture.js'
import { loadFixtures as load, type NamedFixture } from '../fixtures/load.js'
import { packagedFolder } from '../fixtures/packaged.js'
import { synthesize } from '../replay/synthesize.js'

export type { NamedFixture } from '../fixtures/load.js'

export interface LoadFixtureOptions extends Cancellable {
  /** Event of a file that has a bare payload without headers, e.g. `push`. */
  readonly event?: string
  /** Code host of such a file: `github` or `gitea`. Default: `github`. */
  readonly provider?: string
}

/** Prefix of the fixtures in this package, as in an import. */
const PACKAGE_PREFIX = 'webhook-relay/fixtures/'

/**
 * Reads one fixture: a delivery in a JSON file, in the format of `relay export`.
 * @param file a `file:` URL, such as `new URL('./opened.json', import.meta.url)`; a path relative to the working folder; or
 * a fixture of this package, such as `webhook-relay/fixtures/github/issues.opened.json`.
 * @throws RelayError `usage` with file, line and field: missing, unreadable, not a fixture, or a folder; `too_large` for a
 * body over 25 MiB.
 * @see docs/replay.md for the format
 */
export async function loadFixture(file: string | URL, options: LoadFixtureOptions = {}): Promise<Fixture> {
  const [first, second] = await loadFixtures(file, options)
  if (first && !second) return first.fixture
  throw new RelayError('usage', `${String(file)} is a folder. Use loadFixtures to read it`)
}

/**
 * Reads every fixture in a folder and its subfolders, sorted by name. `name` is the file's path. `folder` takes the forms of
 * {@link loadFixture}'s `file`.
 * @throws RelayError as {@link loadFixture}; `usage` also for a folder without fixtures.
 */
export async function loadFixtures(
  folder: string | URL,
  options: LoadFixtureOptions = {},
): Promise<NamedFixture[]> {
  const found: NamedFixture[] = []
  for await (const each of load([pathOf(folder)], options)) found.push(each)
  return found
}

function pathOf(given: string | URL): string {
  if (typeof given !== 'string') return fileURLToPath(given)
  return given.startsWith(PACKAGE_PREFIX)
    ? path.join(packagedFolder(), given.slice(PACKAGE_PREFIX.length))
    : given
}

export interface FixtureOfOptions {
  /** Code host that sends the delivery. Default: `github`. */
  readonly provider?: Exclude<ProviderName, 'sandbox'>
}

/**
 * Creates a delivery of an event, e.g. `push` or `issues.opened`, as the code host would send it now, with every field of
 * a real one. It is about the sandbox's repository `octo/demo`: issue events about #1, pull request events about #2.
 * @throws RelayError `usage` for an event that `relay trigger --list` does not name.
 */
export function fixtureOf(event: string, { provider = 'github' }: FixtureOfOptions = {}): Fixture {
  return synthesize(provider, event, Date.now())
}
