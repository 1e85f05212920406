import type { HandOn, HandOns, HandOnState, OnDuplicate } from './hand-on.js'

/** What is to be handed on now, and how all targets of the entry then stand. */
export interface Plan {
  readonly targets: readonly string[]
  readonly handOns: HandOns
}

/** How it must stand with a target, if at all, to be handed on to it again. */
const DUE: Readonly<Record<OnDuplicate, readonly (HandOnState | undefined)[]>> = {
  never: [],
  'if-failed': [undefined, 'failed'],
  always: [undefined, 'failed', 'succeeded'],
}

/** A delivery that is new waits for each of `targets`. */
export function planNew(targets: readonly string[], now: number): Plan {
  return plan({}, [...new Set(targets)], now)
}

/** A delivery that came again waits for those of `targets` that `rule` says; how it stands with all others is left. */
export function planAgain(
  handOns: HandOns,
  targets: readonly string[],
  rule: OnDuplicate,
  now: number,
): Plan {
  const due = DUE[rule]
  const stands = (target: string): HandOnState | undefined =>
    Object.hasOwn(handOns, target) ? handOns[target]?.state : undefined
  return plan(
    handOns,
    [...new Set(targets)].filter((target) => due.includes(stands(target))),
    now,
  )
}

function plan(handOns: HandOns, targets: readonly string[], since: number): Plan {
  const waiting: HandOn = { state: 'waiting', tries: 0, since }
  const added = targets.map((target) => [target, waiting] as const)
  // From entries, because a target's id is any text: `__proto__` would be lost as a key that is assigned.
  return { targets, handOns: Object.fromEntries([...Object.entries(handOns), ...added]) }
}
