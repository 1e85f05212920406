import { RelayError } from '../../../base/errors.js'
import type { RefusedAnswer } from '../../../server/instance.js'
import type { Context } from '../../context.js'
import { type FilterFlags, readFilter } from '../../journal/filter.js'
import { KIND_NAMES, openRefusedReader, refusedLines, refusedObject } from '../../journal/refused.js'
import type { Attached } from '../../session/attach.js'

type RefusedFlags = FilterFlags & { readonly json?: boolean; readonly follow?: boolean }

/** Runs `relay log --refused`: what the running instance refused, oldest first, and how many there were of each kind. */
export async function printRefused(context: Context, flags: RefusedFlags, attached: Attached): Promise<void> {
  const { output } = attached
  const { event, repo, since, until, status, failed, text, follow } = flags
  const given = Object.entries({ event, repo, since, until, status, failed, text, follow }).find(
    ([, value]) => value !== undefined,
  )
  if (given) throw new RelayError('usage', `--refused cannot be combined with --${given[0]}`)
  const { last = Infinity } = readFilter(
    { ...(flags.last !== undefined && { last: flags.last }) },
    Date.now(),
  )
  const reader = openRefusedReader(context, attached)
  const { refused, counts } = await reader.list()
  const { stdout } = context
  const columns = stdout.isTTY === true ? (stdout.columns ?? 80) : Infinity
  for (const each of refused.slice(Math.max(0, refused.length - last)))
    if (flags.json) output.object(refusedObject(each))
    else for (const line of refusedLines(each, columns)) output.result(line)
  if (refused.length === 0) throw new RelayError('no_match', 'The running instance has refused no request')
  if (flags.json) output.object({ type: 'refused_counts', ...counts })
  else output.say(`refused since the start: ${describeCounts(counts)}`)
}

/** `34,890 without a well-formed signature, 3 too large` */
function describeCounts(counts: RefusedAnswer['counts']): string {
  const names: [string, string][] = Object.entries(KIND_NAMES)
  const given: ReadonlyMap<string, number> = new Map(Object.entries(counts))
  return names
    .flatMap(([kind, name]) => {
      const count = given.get(kind)
      return count === undefined ? [] : [`${count.toLocaleString('en-US')} ${name}`]
    })
    .join(', ')
}
