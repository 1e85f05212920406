import { statSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { errorReason, RelayError } from '../../base/errors.js'
import type { Entry } from '../../journal/types.js'
import { fixtureText, hasSignature, toFixture } from '../../replay/fixture.js'
import { redact } from '../../replay/redact.js'
import { STORED } from '../options.js'
import { define, type Flags, printEach, type Shell } from '../command.js'
import { findEntry } from '../journal.js'
import { eventName } from '../output/deliveries.js'
import type { Output } from '../output/output.js'
import { openProfile } from '../profile.js'

export const exportCommand = define({
  ...STORED,
  description: `Prints one delivery as a fixture, or writes several to a folder: a JSON file each, with its headers and exact body, for use
in tests. Headers with credentials are left out. The payload is complete, and its signature is real. --redact makes a fixture to share: it removes
signatures, replaces e-mail addresses, tokens and possible secrets, and adds a key that signs the fixture when it is replayed. Read it before you
publish it: no program knows every secret.`,
  examples: `relay export last > push.json
relay export 7 --redact --out test/fixtures/push.json
relay export 7 --pretty --out test/fixtures/opened.json
relay export 3 7 last --redact --out test/fixtures`,
  args: [['<entry...>', 'numbers of entries, or last']],
  options: [
    ['--out <file>', 'write to this file, which must not exist, or to a folder'],
    ['--redact', 'leave out signatures, replace addresses and secrets'],
    ['--pretty', 'the payload as readable JSON, if that keeps every byte of the body'],
    ['--force', 'overwrite what exists'],
  ],
  run: runExport,
  print: printEach(print),
  // Printed unchanged: a fixture is JSON, and its version is `"relay":1`.
  json: (exported) => (exported.file === undefined ? exported.fixture : exported),
})

interface ExportInput extends Flags {
  readonly entry: readonly string[]
  readonly out?: string
  readonly force?: boolean
  readonly pretty?: boolean
  readonly redact?: boolean
}

async function* runExport(shell: Shell, flags: ExportInput): AsyncGenerator<Exported> {
  const { entry: words, out: file } = flags
  const isMany = words.length > 1
  const isStdout = file === undefined || file === '-'
  if (isMany && isStdout)
    throw new RelayError('usage', 'Several entries need a folder, with a file for each: --out <folder>')
  await using profile = await openProfile(shell, flags)
  const journal = await profile.journal()
  const folder = isStdout ? undefined : await folderOf(shell, file, isMany)
  for (const word of words) {
    const entry = await findEntry(journal, word)
    const { n } = entry
    const fixture = await fixtureOf(shell, entry, flags)
    if (isStdout) {
      yield { n, fixture }
      continue
    }
    const name = folder === undefined ? file : path.join(folder, fileNameOf(entry))
    await write(shell, name, fixture, flags.force)
    yield { n, file: name }
  }
}

/** Makes the fixture of an entry, and says what a reader of it should know. */
async function fixtureOf({ out, signal }: Shell, entry: Entry, flags: ExportInput): Promise<string> {
  const { n } = entry
  const content = toFixture(flags.redact ? await redact(entry, signal) : entry, flags)
  if (hasSignature(content))
    out.say(
      `#${n} is written with its real signature, which proves its payload to anyone who has the secret. --redact leaves it out`,
    )
  if (flags.pretty && content.payload === undefined)
    out.say(`#${n} has its exact body: writing its JSON again would change bytes, and its signature`)
  return fixtureText(content)
}

/**
 * Returns the folder that `--out` names, as it was given, and makes it for several entries. Undefined for a file.
 * @throws RelayError `usage`
 */
async function folderOf({ cwd }: Shell, out: string, isMany: boolean): Promise<string | undefined> {
  const place = path.resolve(cwd, out)
  if (statSync(place, { throwIfNoEntry: false })?.isDirectory()) return out
  if (!isMany && !/[/\\]$/.test(out)) return undefined
  try {
    await mkdir(place)
    return out
  } catch (cause) {
    const code = errorReason(cause)
    const why = code === 'EEXIST' ? 'is no folder' : `cannot be made (${code})`
    throw new RelayError('usage', `--out: ${out} ${why}`, { cause })
  }
}

/** Name of an entry's file in a folder: `7-issues.opened.json`. The event comes from outside. */
function fileNameOf(entry: Entry): string {
  const event = eventName(entry)
    .replaceAll(/[^\w.-]+/g, '_')
    .slice(0, MAX_NAME)
  return `${entry.n}-${event}.json`
}

/** Longest event in the name of a file, in characters. */
const MAX_NAME = 100

async function write({ cwd }: Shell, file: string, fixture: string, force = false): Promise<void> {
  try {
    await writeFile(path.resolve(cwd, file), fixture, { flag: force ? 'w' : 'wx' })
  } catch (cause) {
    const code = errorReason(cause)
    const why = code === 'EEXIST' ? 'exists. Overwrite it with --force' : `cannot be written (${code})`
    throw new RelayError('usage', `--out: ${file} ${why}`, { cause })
  }
}

/** The fixture, or the file that it was written to. */
type Exported =
  | { readonly n: number; readonly fixture: string; readonly file?: undefined }
  | { readonly n: number; readonly file: string }

function print(exported: Exported, out: Output): void {
  if (exported.file === undefined) out.exactly(exported.fixture)
  else out.say(`#${exported.n} is in ${exported.file}`)
}
