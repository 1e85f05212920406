import { RelayError } from '../../base/errors.js'
import type { Context } from '../context.js'
import { findEntry } from '../journal/entry-number.js'
import { readPayload } from '../../journal/payload.js'
import { eventName } from '../output/delivery-line.js'
import { targetOfDelivery } from './delivery-target.js'
import { readDelivery } from './piped-delivery.js'
import type { Session } from './session.js'
import { parseTarget, type Target } from './target.js'

export interface FromFlag {
  readonly from?: string | undefined
}

/** The arguments of an action: its target, unless `--from` names that, and one more. */
export interface Operands {
  readonly address: string | undefined
  readonly other: string | undefined
}

/**
 * Tells the arguments apart: with `--from` there is no target among them.
 * @param others how many arguments besides the target the command takes.
 * @throws RelayError `usage` for a target together with `--from`, or for neither.
 */
export function readOperands(
  { from }: FromFlag,
  [first, second]: readonly (string | undefined)[],
  others: 0 | 1,
): Operands {
  if (from === undefined) {
    if (first === undefined) throw new RelayError('usage', 'No target given. Give owner/repo#12, or --from')
    return { address: first, other: second }
  }
  if ((others === 0 ? first : second) === undefined) return { address: undefined, other: first }
  const given = JSON.stringify(first)
  throw new RelayError('usage', `The target is given twice: as ${given} and with --from ${from}`)
}

/** Finds the target of an action, in the data of its session if that is necessary. */
export type FindTarget = (session: Pick<Session, 'journal'>) => Promise<Target>

/**
 * Reads what names the target: an address, an entry of the journal, or a delivery on standard input.
 * @throws RelayError as `parseTarget`, {@link readDelivery} and `targetOfDelivery`; the result as `findEntry`.
 */
export async function readSubject(
  context: Context,
  { from }: FromFlag,
  { address }: Pick<Operands, 'address'>,
): Promise<FindTarget> {
  if (address !== undefined) return fixed(parseTarget(address))
  if (from === '-') return fixed(targetOfDelivery(await readDelivery(context)))
  return async ({ journal }) => {
    const entry = await findEntry(journal, from ?? '')
    const { n, event } = entry
    const payload = readPayload(entry)?.value
    return targetOfDelivery({ name: `#${n} (${eventName(entry)})`, event, payload })
  }
}

export function fixed(target: Target): FindTarget {
  return async () => target
}
