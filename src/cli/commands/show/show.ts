import type { Context } from '../../context.js'
import { findEntry } from '../../journal/entry-number.js'
import { entryObject } from '../../journal/object.js'
import { openJournalReader } from '../../journal/open.js'
import { progressOf } from '../../journal/progress.js'
import { attach } from '../../session/attach.js'
import type { CommonFlags } from '../../settings/prepare.js'
import { entryPage } from './page.js'

/** Runs `relay show`. */
export async function runShow(
  context: Context,
  flags: CommonFlags & { readonly body?: boolean },
  text: string,
): Promise<void> {
  await using reader = await openJournalReader(await attach(context, flags))
  const { journal, output } = reader
  const entry = await findEntry(journal, text)
  if (flags.body) return output.exactly(entry.body)
  const forwards = await journal.forwards(entry.n)
  const progress = await progressOf(journal, { n: entry.n, forwards })
  if (flags.json) return output.object(entryObject(entry, progress))
  for (const line of entryPage(entry, progress)) output.result(line)
}
