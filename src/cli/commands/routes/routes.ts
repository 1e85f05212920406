import { createRouting, explain } from '../../../dispatch/routing.js'
import type { Context } from '../../context.js'
import { findEntry } from '../../journal/entry-number.js'
import { openJournalReader } from '../../journal/open.js'
import { eventName } from '../../output/delivery-line.js'
import { table } from '../../output/table.js'
import { forwardSettings } from '../../settings/complete.js'
import { attach } from '../../session/attach.js'
import type { CommonFlags } from '../../settings/prepare.js'

/** Runs `relay routes test`. */
export async function runTest(context: Context, flags: CommonFlags, text: string): Promise<void> {
  const attached = await attach(context, flags)
  await using reader = await openJournalReader(attached)
  const { output, journal } = reader
  const entry = await findEntry(journal, text)
  const { routes, ignore } = createRouting(forwardSettings(attached.options))
  const results = explain(routes, ignore, entry)
  if (flags.json) {
    const list = results.map(({ route, matched, why }) => ({ target: route.label, matched, why }))
    return output.object({ n: entry.n, event: entry.event, action: entry.action, routes: list })
  }
  if (results.length === 0)
    output.say(
      `#${entry.n} ${eventName(entry)}: the settings have no routes. Give those that a running serve got as flags here too`,
    )
  const rows = results.map(({ route, matched, why }) => [matched ? 'yes' : 'no', route.label, why])
  for (const line of table(rows)) output.result(line)
}
