import type { Context } from '../../context.js'
import { findEntry } from '../../journal/entry-number.js'
import { entryObject } from '../../journal/object.js'
import { openJournalReader } from '../../journal/open.js'
import { progressOf } from '../../journal/progress.js'
import { refusedId } from '../../journal/refused.js'
import { attach, type Attached } from '../../session/attach.js'
import { namedTargets } from '../../session/current-routes.js'
import type { CommonFlags } from '../../settings/prepare.js'
import { entryPage } from './page.js'
import { showRefused } from './refused.js'

/** Runs `relay show`. */
export async function runShow(
  context: Context,
  flags: CommonFlags & { readonly body?: boolean },
  text: string,
): Promise<void> {
  const attached = await attach(context, flags)
  const refused = refusedId(text)
  if (refused !== undefined) return showRefused(context, flags, attached, refused)
  const found = await read(attached, text)
  const { output } = attached
  if (flags.body) return output.exactly(found.entry.body)
  if (flags.json) return output.object(entryObject(found.entry, found.progress))
  const named = await namedTargets(attached, context)
  await output.pages(entryPage(found.entry, found.progress, named, output.isTerminal))
}

/** The journal is closed before a pager waits for the reader. */
async function read(attached: Attached, text: string) {
  await using reader = await openJournalReader(attached)
  const { journal } = reader
  const entry = await findEntry(journal, text)
  const forwards = await journal.forwards(entry.n)
  return { entry, progress: await progressOf(journal, { n: entry.n, forwards }) }
}
