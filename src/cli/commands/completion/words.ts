import { silentLog } from '../../../base/log.js'
import { listProfiles } from '../../../instance/profile.js'
import { Journal } from '../../../journal/journal.js'
import { sentEvents } from '../../../codehost/events.js'
import { schemeOf } from '../../../codehost/schemes.js'
import { triggers } from '../../../replay/synthesize.js'
import { mayHaveData, openDatabase } from '../../../store/open.js'
import type { Context } from '../../context.js'
import { createOutput } from '../../output/output.js'
import { profileFolder, storeOf } from '../../settings/complete.js'
import { attach, type Attached } from '../../session/attach.js'
import type { CommonFlags } from '../../settings/prepare.js'
import { openSources } from '../../settings/read.js'
import type { WordKind } from './word-kinds.js'

/** Entries that are offered: as many as fit on a screen, and what people look at is recent. */
const RECENT = 20

/** Prints the words that a shell offers in a place, one a line. Writes nothing else, and makes no profile. */
export async function printWords(context: Context, flags: CommonFlags, kind: WordKind): Promise<void> {
  const output = createOutput(context, flags)
  for (const word of await words(context, flags, kind)) output.result(word)
}

async function words(context: Context, flags: CommonFlags, kind: WordKind): Promise<readonly string[]> {
  // Where several instances run, this is how one is named.
  if (kind === 'profiles') return listProfiles(openSources(context, flags, silentLog).home)
  const attached = await attach(context, flags, { tolerant: true, mayWait: true })
  const { provider } = attached.options
  if (kind === 'entries') return ['last', ...(await recentEntries(attached))]
  if (kind === 'triggers') return triggers(provider)
  return [...sentEvents(schemeOf(provider).events)].flatMap(([event, actions]) => [
    event,
    ...actions.map((action) => `${event}.${action}`),
  ])
}

async function recentEntries({ options }: Attached): Promise<string[]> {
  const [folder, store] = [profileFolder(options), storeOf(options)]
  if (!mayHaveData(store, folder)) return []
  await using database = await openDatabase({ kind: store, folder, create: false })
  const numbers: string[] = []
  for await (const { n } of new Journal(database.sql).select({ last: RECENT })) numbers.push(String(n))
  return numbers
}
