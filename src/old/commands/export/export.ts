import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { errorReason } from '../../../base/errno.js'
import { RelayError } from '../../../base/errors.js'
import { fixtureText, toFixture } from '../../../fixtures/fixture.js'
import type { Context } from '../../context.js'
import { findEntry } from '../../journal/entry-number.js'
import { openJournalReader } from '../../journal/open.js'
import { attach } from '../../session/attach.js'
import type { CommonFlags } from '../../settings/prepare.js'

type ExportFlags = CommonFlags & {
  readonly out?: string
  readonly force?: boolean
  readonly pretty?: boolean
}

/** Runs `relay export`. */
export async function runExport(context: Context, flags: ExportFlags, text: string): Promise<void> {
  await using reader = await openJournalReader(await attach(context, flags))
  const { journal, output } = reader
  const entry = await findEntry(journal, text)
  const content = toFixture(entry, flags)
  if (flags.pretty && content.payload === undefined)
    output.say(`#${entry.n} has its exact body: writing its JSON again would change bytes, and its signature`)
  const fixture = fixtureText(content)
  // The same under --json: a fixture is JSON, and its version is `"relay":1`.
  if (flags.out === undefined || flags.out === '-') return output.exactly(fixture)
  await write(path.resolve(context.cwd, flags.out), fixture, flags)
  if (flags.json) output.object({ n: entry.n, file: flags.out })
  else output.say(`#${entry.n} is in ${flags.out}`)
}

/** @throws RelayError `usage` that names the file. */
async function write(file: string, content: string, { out, force = false }: ExportFlags): Promise<void> {
  try {
    await writeFile(file, content, { flag: force ? 'w' : 'wx' })
  } catch (cause) {
    const code = errorReason(cause)
    const why = code === 'EEXIST' ? 'exists. Overwrite it with --force' : `cannot be written (${code})`
    throw new RelayError('usage', `--out: ${out} ${why}`, { cause })
  }
}
