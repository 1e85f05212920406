import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Journal } from '../../src/journal/journal.js'
import type { ForwardStatus } from '../../src/journal/types.js'
import { attempt, delivery, open, waiting } from './journal-rig.js'

const TARGETS = ['*=http://a', '*=http://b', 'push=http://c', 'issues=exec:d'] as const
const NAMES = ['app', 'web', undefined] as const
const STATUSES: readonly ForwardStatus[] = ['waiting', 'succeeded', 'failed']

/** The forwards of each delivery by target, with the number of attempts. */
type State = Map<number, Map<string, { status: ForwardStatus; attempts: number }>>

async function stateOf(journal: Journal): Promise<State> {
  const state: State = new Map()
  for await (const { n, forwards } of journal.select()) {
    const attempts = await journal.attempts(n)
    const of = Object.entries(forwards).map(([target, { status }]) => {
      return [target, { status, attempts: attempts.filter((each) => each.target === target).length }] as const
    })
    state.set(n, new Map(of))
  }
  return state
}

/** What each name moves, from the names before and after. */
function movesOf(
  before: ReadonlyMap<string, string | undefined>,
  after: ReadonlyMap<string, string | undefined>,
): ReadonlyMap<string, string> {
  const idOf = new Map([...after].map(([id, name]) => [name, id]))
  return new Map(
    [...before].flatMap(([from, name]) => {
      const to = name === undefined ? undefined : idOf.get(name)
      return to === undefined || to === from ? [] : [[from, to] as const]
    }),
  )
}

/** Moves forwards of one delivery: where both targets have one, the ended one of the former target stays. */
function moveAll(
  forwards: Map<string, { readonly status: ForwardStatus }>,
  moves: ReadonlyMap<string, string>,
): void {
  const pending = new Map(moves)
  for (;;) {
    const [from, to] = [...pending].find(([, each]) => !pending.has(each)) ?? []
    if (from === undefined || to === undefined) break
    pending.delete(from)
    const forward = forwards.get(from)
    if (!forward) continue
    if (!forwards.has(to)) forwards.set(to, forward)
    else if (forward.status !== 'waiting') continue
    forwards.delete(from)
  }
  const exchanged = [...pending].map(([from, to]) => [to, forwards.get(from)] as const)
  for (const from of pending.keys()) forwards.delete(from)
  for (const [to, forward] of exchanged) if (forward) forwards.set(to, forward)
}

const forwards = fc.dictionary(fc.constantFrom(...TARGETS), fc.constantFrom(...STATUSES), { maxKeys: 4 })
/** Targets with names, each of which is of one target. */
const named = fc
  .uniqueArray(fc.constantFrom(...TARGETS), { maxLength: 4 })
  .chain((ids) =>
    fc
      .uniqueArray(fc.constantFrom(...NAMES), { minLength: 0, maxLength: 3 })
      .map((names) => ids.map((id, i) => ({ id, name: names[i] }))),
  )

describe('a target that has the name of another one', () => {
  it('takes over what that had, in any order and exchange of names, and loses nothing that waits', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(forwards, { maxLength: 6 }),
        fc.array(named, { minLength: 1, maxLength: 4 }),
        async (all, steps) => {
          await using database = await open()
          const journal = new Journal(database.sql)
          for (const [i, each] of all.entries()) {
            const plan = { targets: Object.keys(each), onDuplicate: 'never' } as const
            const { n } = await journal.append(delivery(`d-${i}`), plan)
            for (const [target, status] of Object.entries(each))
              if (status !== 'waiting') await journal.record(n, attempt(target), { ...waiting, status })
          }
          let names: ReadonlyMap<string, string | undefined> = new Map()
          for (const step of steps) {
            const before = await stateOf(journal)
            await journal.nameTargets(step)
            const after = await stateOf(journal)
            const next = new Map([...names, ...step.map(({ id, name }) => [id, name] as const)])
            const moves = movesOf(names, new Map(step.map(({ id, name }) => [id, name])))
            for (const [n, targets] of before) {
              const expected = new Map(targets)
              moveAll(expected, moves)
              const sorted = (map: ReadonlyMap<string, unknown> = new Map()) =>
                [...map].toSorted(([a], [b]) => (a < b ? -1 : 1))
              expect(sorted(after.get(n))).toEqual(sorted(expected))
            }
            for (const from of moves.keys())
              if (!step.some(({ id }) => id === from)) next.set(from, undefined)
            names = next
            await countsFit(journal)
          }
        },
      ),
      { numRuns: 150 },
    )
  })
})

/** The counts of each target are those of its forwards. */
async function countsFit(journal: Journal): Promise<void> {
  const counted = new Map<string, Record<ForwardStatus, number>>()
  for (const targets of (await stateOf(journal)).values())
    for (const [target, { status }] of targets) {
      const of = counted.get(target) ?? { waiting: 0, succeeded: 0, failed: 0 }
      of[status]++
      counted.set(target, of)
    }
  const none = { waiting: 0, succeeded: 0, failed: 0 }
  for (const [target, { oldest: _, ...counts }] of await journal.counts())
    expect({ target, ...counts }).toEqual({ target, ...(counted.get(target) ?? none) })
}
