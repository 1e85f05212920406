import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { HandOn, HandOns, OnDuplicate } from '../../src/journal/hand-on.js'
import { planAgain, planNew } from '../../src/journal/plan.js'

const target = fc.constantFrom('a', 'b', 'c', '__proto__', '1', 'toString')
const handOn: fc.Arbitrary<HandOn> = fc.record({
  state: fc.constantFrom('waiting', 'succeeded', 'failed'),
  tries: fc.nat(5),
  since: fc.nat(100),
})
const handOns: fc.Arbitrary<HandOns> = fc
  .array(fc.tuple(target, handOn))
  .map((pairs) => Object.fromEntries(pairs))
const waitingSince = (since: number): HandOn => ({ state: 'waiting', tries: 0, since })

describe('a plan', () => {
  it('for a new delivery waits for every target once', () => {
    fc.assert(
      fc.property(fc.array(target), fc.nat(), (targets, now) => {
        const each = [...new Set(targets)]
        expect(planNew(targets, now)).toEqual({
          targets: each,
          handOns: Object.fromEntries(each.map((one) => [one, waitingSince(now)])),
        })
      }),
    )
  })

  /** What the rules promise, target by target. */
  const again: Record<OnDuplicate, (before: HandOn | undefined) => boolean> = {
    never: () => false,
    'if-failed': (before) => before === undefined || before.state === 'failed',
    always: (before) => before?.state !== 'waiting',
  }

  it.each(['never', 'if-failed', 'always'] as const)(
    'for one that came again follows the rule: %s',
    (rule) => {
      fc.assert(
        fc.property(handOns, fc.array(target), fc.nat(), (before, targets, now) => {
          const known = new Map(Object.entries(before))
          const due = [...new Set(targets)].filter((one) => again[rule](known.get(one)))
          const after = new Map([...known, ...due.map((one) => [one, waitingSince(now)] as const)])
          expect(planAgain(before, targets, rule, now)).toEqual({
            targets: due,
            handOns: Object.fromEntries(after),
          })
        }),
      )
    },
  )
})
