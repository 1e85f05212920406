import { createRequire } from 'node:module'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Cancellable } from '../base/abort.js'
import { RelayError } from '../base/errors.js'
import type { Fixture } from '../journal/fixture.js'
import { loadFixtures as load, type NamedFixture } from '../journal/load-fixture.js'

export type { NamedFixture } from '../journal/load-fixture.js'

export interface LoadFixtureOptions extends Cancellable {
  /** For a file with a bare payload and no headers: the event it is of, e.g. `push`. */
  readonly event?: string
  /** And the code host it comes from: `github`, which is the default, or `gitea`. */
  readonly provider?: string
}

/** The set that comes with the package, as an import would name it. */
const OWN = 'webhook-relay/fixtures/'

/**
 * Reads one fixture: a delivery in a JSON file, as `relay export` writes it.
 * @param file a `file:` URL, such as `new URL('./opened.json', import.meta.url)`; a path, from the working folder; or one
 * of those that come with relay, `webhook-relay/fixtures/github/issues.opened.json`.
 * @throws RelayError `usage` naming file, line and field: not there, not readable, not a fixture, or a folder;
 * `too_large` for more than 25 MiB of body.
 * @see docs/fixtures.md for the format
 */
export async function loadFixture(file: string | URL, options: LoadFixtureOptions = {}): Promise<Fixture> {
  const [first, second] = await loadFixtures(file, options)
  if (first && !second) return first.fixture
  throw new RelayError('usage', `${String(file)}: a folder of fixtures, which loadFixtures reads`)
}

/**
 * Reads every fixture in a folder and below, in the order of their names; `name` is the file's path. The names are those
 * of {@link loadFixture}, and so are the errors; `usage` also for a folder without any.
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
  // By way of a file that is there: a folder cannot be resolved.
  const home = (): string =>
    path.dirname(createRequire(import.meta.url).resolve('webhook-relay/package.json'))
  return given.startsWith(OWN) ? path.join(home(), 'fixtures', given.slice(OWN.length)) : given
}
