import { explain, ignoredBy } from '../../../dispatch/routes.js'
import type { Context } from '../../context.js'
import { findEntry } from '../../journal/entry-number.js'
import { openJournalReader } from '../../journal/open.js'
import { eventName } from '../../output/delivery-line.js'
import { table } from '../../output/table.js'
import { attach } from '../../session/attach.js'
import type { CommonFlags } from '../../settings/prepare.js'
import { routesOfInstance, routesOfSettings } from '../../session/current-routes.js'

/** Runs `relay routes test`. */
export async function runTest(context: Context, flags: CommonFlags, text: string): Promise<void> {
  const attached = await attach(context, flags)
  await using reader = await openJournalReader(attached)
  const { output, journal } = reader
  const entry = await findEntry(journal, text)
  const given = flags.forward ?? flags.exec ?? flags.ignore
  const live = given === undefined ? await routesOfInstance(attached, context) : undefined
  const { routes, ignore } = live ?? (await routesOfSettings(attached))
  const configured = routes.filter(({ state }) => state !== 'gone')
  const results = explain(configured, ignore, entry)
  const ignored = ignoredBy(ignore, entry)
  const { n, event, action } = entry
  if (flags.json) return output.object({ n, event, action, ignoredBy: ignored ?? null, routes: results })
  for (const line of table(results.map(({ target, matched, why }) => [matched ? 'yes' : 'no', target, why])))
    output.result(line)
  const name = `#${n} ${eventName(entry)}`
  if (ignored !== undefined) output.say(`${name} goes nowhere: it is ignored by ${ignored}`)
  else if (results.length === 0) output.say(`${name} goes nowhere: there are no routes`)
  else if (!results.some(({ matched }) => matched)) output.say(`${name} goes nowhere: no route matches it`)
}
