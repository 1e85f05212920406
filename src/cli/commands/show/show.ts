import type { Context } from '../../context.js'
import { findEntry } from '../../journal/entry-number.js'
import { entryObject } from '../../journal/object.js'
import { openJournalReader } from '../../journal/open.js'
import { progressOf } from '../../journal/progress.js'
import { refusedId } from '../../journal/refused.js'
import { type CommonFlags, prepare } from '../../settings/prepare.js'
import { entryPage } from './page.js'
import { showRefused } from './refused.js'

/** Runs `relay show`. */
export async function runShow(
  context: Context,
  flags: CommonFlags & { readonly body?: boolean },
  text: string,
): Promise<void> {
  const prepared = prepare(context, flags)
  const refused = refusedId(text)
  if (refused !== undefined) return showRefused(context, flags, prepared, refused)
  await using reader = await openJournalReader(prepared)
  const { journal, output } = reader
  const entry = await findEntry(journal, text)
  if (flags.body) return output.exactly(entry.body)
  const forwards = await journal.forwards(entry.n)
  const progress = await progressOf(journal, { n: entry.n, forwards })
  if (flags.json) return output.object(entryObject(entry, progress))
  for (const line of entryPage(entry, progress)) output.result(line)
}
