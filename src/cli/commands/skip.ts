import { RelayError } from '../../base/errors.js'
import { labelOf, publicTargetId, shortNames } from '../../dispatch/routes.js'
import { define, type Flags, printEach, type Shell } from '../command.js'
import { ENTRY, STORED } from '../options.js'
import { callInstance } from '../instance-client.js'
import { findEntry, knownTargets } from '../journal.js'
import { marked, own } from '../output/outside.js'
import { openProfile } from '../profile.js'

export const skipCommand = define({
  ...STORED,
  description: `Gives up a waiting delivery: it is not sent to the targets that it waits for, and counts as failed there. An attempt that
has begun continues. relay replay sends the delivery after all.`,
  examples: `relay skip 7
relay log --status waiting`,
  args: [ENTRY],
  run: runSkip,
  print: printEach(({ n, name }: Skipped, out) => out.result(`skipped #${n} → ${name}`)),
  json: ({ n, target, name }: Skipped) =>
    marked({ type: 'skipped', n, target: own(labelOf(target)), name: own(name) }),
})

interface SkipInput extends Flags {
  readonly entry: string
}

/** A forward that was ended. */
interface Skipped {
  readonly n: number
  /** Public id of the target. */
  readonly target: string
  /** Short name of the target. */
  readonly name: string
}

async function* runSkip(shell: Shell, flags: SkipInput): AsyncGenerator<Skipped> {
  await using profile = await openProfile(shell, flags)
  const journal = await profile.journal()
  const { n } = await findEntry(journal, flags.entry)
  const { instance } = profile
  const targets = instance
    ? (await callInstance(instance, 'skip', { id: n }, shell)).targets
    : (await journal.skip(n)).map(publicTargetId)
  if (targets.length === 0) throw new RelayError('no_match', `Nothing of #${n} waits`)
  const names = shortNames(await knownTargets(profile, journal))
  for (const target of targets)
    yield { n, target, name: names.get(target) ?? shortNames([{ id: target }]).get(target) ?? target }
}
