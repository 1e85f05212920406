import path from 'node:path'
import type { Command } from 'commander'
import { RelayError } from '../../base/errors.js'
import type { Context } from '../context.js'
import { environmentHelp, exitCodesHelp, prepare, type RawOptions } from '../globals.js'

type ExportFlags = RawOptions & { readonly out?: string; readonly force?: boolean }

/** Declares `relay export`. */
export function declareExport(command: Command, context: Context, run = runExport): void {
  command
    .description(
      `Prints one delivery as a fixture: a JSON file with its headers and exact body, to be kept beside tests. Headers with
credentials are not in it, but the payload is as it came: look before you publish it.

Examples:
  relay export last > push.json
  relay export 7 --out test/fixtures/opened.json`,
    )
    .argument('<entry>', 'number of the entry, or last')
    .option('--out <file>', 'write it there; a file that exists is left alone')
    .option('--force', 'overwrite the file')
    .addHelpText('after', () => `${environmentHelp(['home', 'store'])}\n${exitCodesHelp([0, 1, 2, 6])}`)
    .action((entry: string, _: unknown, command: Command) => run(context, entry, command.optsWithGlobals()))
}

async function runExport(context: Context, text: string, flags: ExportFlags): Promise<void> {
  const [{ openReading }, { findEntry }, { fixtureText, toFixture }] = await Promise.all([
    import('../journal/open.js'),
    import('../journal/entry-number.js'),
    import('../../journal/fixture.js'),
  ])
  await using reading = await openReading(prepare(context, flags))
  const { journal, output } = reading
  const entry = findEntry(journal, text)
  const fixture = fixtureText(toFixture(entry))
  // Under --json too: it is JSON, and `"relay":1` its version.
  if (flags.out === undefined || flags.out === '-') return output.exactly(fixture)
  await write(path.resolve(context.cwd, flags.out), fixture, flags)
  if (flags.json) output.object({ n: entry.n, file: flags.out })
  else output.say(`#${entry.n} is in ${flags.out}`)
}

/** @throws RelayError `usage` that names the file. */
async function write(file: string, content: string, { out, force = false }: ExportFlags): Promise<void> {
  const { writeFile } = await import('node:fs/promises')
  try {
    await writeFile(file, content, { flag: force ? 'w' : 'wx' })
  } catch (cause) {
    const code = cause instanceof Error && 'code' in cause ? String(cause.code) : 'unknown reason'
    const why = code === 'EEXIST' ? 'exists: --force overwrites it' : `cannot be written (${code})`
    throw new RelayError('usage', `--out: ${out} ${why}`, { cause })
  }
}
