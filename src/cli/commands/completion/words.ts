import { readdirSync } from 'node:fs'
import path from 'node:path'
import { openJournal } from '../../../journal/open.js'
import { codeHostOf } from '../../../providers/code-hosts.js'
import { triggers } from '../../../sandbox/synthesize.js'
import { databaseExists, openDatabase } from '../../../store/open.js'
import type { Context } from '../../context.js'
import { profileFolder } from '../../settings/complete.js'
import { type CommonFlags, prepare, type Prepared } from '../../settings/prepare.js'
import type { WordKind } from './declaration.js'

/** Entries that are offered: as many as fit on a screen, and what people look at is recent. */
const RECENT = 20

/** Prints the words that a shell offers in a place, one a line. Writes nothing else, and makes no profile. */
export async function printWords(context: Context, flags: CommonFlags, kind: WordKind): Promise<void> {
  const prepared = prepare(context, flags)
  for (const word of await words(prepared, kind)) prepared.output.result(word)
}

async function words(prepared: Prepared, kind: WordKind): Promise<readonly string[]> {
  const { provider, home } = prepared.options
  if (kind === 'entries') return ['last', ...(await recentEntries(prepared))]
  if (kind === 'profiles') return profilesIn(home)
  if (kind === 'triggers') return triggers(provider)
  return [...codeHostOf(provider).actions].flatMap(([event, actions]) => [
    event,
    ...actions.map((action) => `${event}.${action}`),
  ])
}

async function recentEntries({ options, output }: Prepared): Promise<string[]> {
  const folder = profileFolder(options)
  if (options.store === 'memory' || !databaseExists(folder)) return []
  await using database = await openDatabase({ kind: 'file', folder })
  const numbers: string[] = []
  for await (const { n } of openJournal(database.sql, { log: output.log }).select({ last: RECENT }))
    numbers.push(String(n))
  return numbers
}

function profilesIn(home: string): string[] {
  try {
    return readdirSync(home).filter((name) => databaseExists(path.join(home, name)))
  } catch {
    return []
  }
}
