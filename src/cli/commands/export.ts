import { statSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { errorReason, RelayError } from '../../base/errors.js'
import { fixtureText, hasSignature, toFixture } from '../../replay/fixture.js'
import { redact } from '../../replay/redact.js'
import { define, type Flags, type Shell } from '../command.js'
import { findEntry } from '../journal.js'
import { ENTRY, STORED } from '../options.js'
import type { Output } from '../output/output.js'
import { openProfile } from '../profile.js'

interface ExportInput extends Flags {
  readonly entry: string
  readonly out?: string
  readonly force?: boolean
  readonly pretty?: boolean
  readonly redact?: boolean
}

async function runExport(shell: Shell, flags: ExportInput): Promise<Exported> {
  const { out, cwd } = shell
  await using profile = await openProfile(shell, flags)
  const journal = await profile.journal()
  const entry = await findEntry(journal, flags.entry)
  const { n } = entry
  const content = toFixture(flags.redact ? await redact(entry, shell.signal) : entry, flags)
  if (hasSignature(content))
    out.say(
      `#${n} is written with its real signature, which proves its payload to whoever has the secret. --redact leaves it out`,
    )
  if (flags.pretty && content.payload === undefined)
    out.say(`#${n} has its exact body: writing its JSON again would change bytes, and its signature`)
  const fixture = fixtureText(content)
  if (flags.out === undefined || flags.out === '-') return { n, fixture }
  const file = path.resolve(cwd, flags.out)
  try {
    await writeFile(file, fixture, { flag: flags.force ? 'w' : 'wx' })
  } catch (cause) {
    const code = errorReason(cause)
    const isFolder =
      code === 'EISDIR' || (code === 'EEXIST' && statSync(file, { throwIfNoEntry: false })?.isDirectory())
    const exists = code === 'EEXIST' ? 'exists. Overwrite it with --force' : `cannot be written (${code})`
    const why = isFolder ? 'is a folder' : exists
    throw new RelayError('usage', `--out: ${flags.out} ${why}`, { cause })
  }
  return { n, file: flags.out }
}

/** The fixture, or the file that it was written to. */
type Exported =
  | { readonly n: number; readonly fixture: string; readonly file?: undefined }
  | { readonly n: number; readonly file: string }

function print(exported: Exported, out: Output): void {
  if (exported.file === undefined) out.exactly(exported.fixture)
  else out.say(`#${exported.n} is in ${exported.file}`)
}

export const exportCommand = define({
  ...STORED,
  description: `Prints one delivery as a fixture: a JSON file with its headers and exact body, for use in tests. Headers with credentials
are left out. The payload is complete, and its signature is real. --redact makes a fixture to pass on: without signatures, with e-mail
addresses, tokens and what looks like a secret replaced, and with a key of its own that signs it when it is replayed. Read it before you
publish it: no program knows every secret.`,
  examples: `relay export last > push.json
relay export 7 --redact --out test/fixtures/push.json
relay export 7 --pretty --out test/fixtures/opened.json`,
  args: [ENTRY],
  options: [
    ['--out <file>', 'write to this file, which must not exist'],
    ['--redact', 'leave out signatures, replace addresses and secrets'],
    ['--pretty', 'the payload as readable JSON, if that keeps every byte of the body'],
    ['--force', 'overwrite the file'],
  ],
  run: runExport,
  print,
  // Printed unchanged: a fixture is JSON, and its version is `"relay":1`.
  json: (exported) => (exported.file === undefined ? exported.fixture : exported),
})
