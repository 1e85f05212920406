import { RelayError } from '../../../base/errors.js'
import type { Context } from '../../context.js'
import type { FilterFlags } from '../../journal/filter.js'
import { openDestination } from './destination.js'
import type { SendFlags } from './send-options.js'
import { readPlan } from './send-plan.js'
import { run } from './run.js'
import { checkSelection, selectItems } from './select-items.js'
import { watchForwards } from './watch-forwards.js'

/** Runs `relay replay`. */
export async function runReplay(
  context: Context,
  flags: SendFlags & FilterFlags & { readonly forwarded?: boolean },
  words: readonly string[],
): Promise<void> {
  checkSelection(words, flags)
  const plan = readPlan(flags)
  if (flags.forwarded && (plan.to !== undefined || plan.times > 1))
    throw new RelayError(
      'usage',
      '--forwarded: waits for the targets of the running relay serve, so it cannot be combined with --to or --times',
    )
  await using destination = await openDestination(context, flags, plan)
  const items = await selectItems(context, words, flags, destination)
  const sending = { ...plan, keepId: plan.keepId || flags.failed === true }
  const watch = flags.forwarded ? await watchForwards(destination.journal()) : undefined
  await run(context, flags, sending, items, destination, { onAccepted: watch?.accepted })
  await watch?.end(context, destination.output)
}
