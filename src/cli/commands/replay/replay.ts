import type { Context } from '../../context.js'
import type { FilterFlags } from '../../journal/filter.js'
import { openDestination } from './destination.js'
import type { SendFlags } from './send-options.js'
import { readPlan } from './send-plan.js'
import { run } from './run.js'
import { checkSelection, selectItems } from './select-items.js'

/** Runs `relay replay`. */
export async function runReplay(
  context: Context,
  flags: SendFlags & FilterFlags,
  words: readonly string[],
): Promise<void> {
  checkSelection(words, flags)
  const plan = readPlan(flags)
  await using destination = await openDestination(context, flags, plan)
  const items = await selectItems(context, words, flags, destination)
  await run(context, flags, { ...plan, keepId: plan.keepId || flags.failed === true }, items, destination)
}
