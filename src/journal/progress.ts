import { RelayError } from '../base/errors.js'
import type { Database, TableWrite } from '../store/database.js'
import { decodeAttempt, encodeAttempt } from './attempt-row.js'
import type { Attempt, HandOn, HandOns } from './hand-on.js'
import type { Journal } from './journal.js'
import { firstAttempt, MAX_ATTEMPTS, type Tables } from './tables.js'

export type Progress = Pick<Journal, 'unfinished' | 'record' | 'finish' | 'handOns' | 'attempts'>

/** How many attempts are looked through for the last one at the same target: as many targets as are likely to be down at once. */
const LOOK_BACK = 16

/** What is still to be handed on, and what has been tried. Entries themselves are neither read nor written. */
export function createProgress(database: Database, tables: Tables): Progress {
  /** An entry that was removed meanwhile stays so: nothing is written for it. */
  const update = (n: number, target: string, handOn: HandOn, more: () => TableWrite[]): Promise<void> =>
    database.transact(() => {
      const before = findHandOns(tables, n)
      if (!before) return { result: undefined, writes: [] }
      return {
        result: undefined,
        writes: [...writeHandOns(tables, n, { ...before, [target]: handOn }), ...more()],
      }
    })
  return {
    *unfinished() {
      for (const { key: n } of tables.open.range()) {
        for (const [target, handOn] of Object.entries(readHandOns(tables, n))) {
          if (handOn.state === 'waiting') yield { n, target, handOn }
        }
      }
    },
    record: (n, attempt, handOn) =>
      update(n, attempt.target, handOn, () => [writeAttempt(tables, n, attempt)]),
    finish: (n, target, handOn) => update(n, target, handOn, () => []),
    handOns: (n) => readHandOns(tables, n),
    attempts: (n) =>
      wasTried(tables, n)
        ? [...tables.attempts.range(attemptsOf(n))].map(({ value }) => decodeAttempt(value))
        : [],
  }
}

/** @throws RelayError `storage` for a row of a later format. */
export function readHandOns(tables: Tables, n: number): HandOns {
  return findHandOns(tables, n) ?? {}
}

/** Undefined for an entry that has none. */
function findHandOns({ handOns }: Tables, n: number): HandOns | undefined {
  const row = handOns.get(n)
  if (row && row.v !== 1) {
    throw new RelayError('storage', `The hand-on of entry ${n} was written by a newer version of relay`)
  }
  return row?.targets
}

export function writeHandOns({ handOns, open }: Tables, n: number, targets: HandOns): TableWrite[] {
  const waits = Object.values(targets).some(({ state }) => state === 'waiting')
  return [handOns.put(n, { v: 1, targets }), waits ? open.put(n, true) : open.remove(n)]
}

export function attemptsOf(n: number): { from: number; to: number } {
  return { from: firstAttempt(n), to: firstAttempt(n + 1) - 1 }
}

/** Looking for one row costs less than looking through none, and most entries are tried once. */
function wasTried({ attempts }: Tables, n: number): boolean {
  return attempts.get(firstAttempt(n)) !== undefined
}

/** On a row of its own, or on that of the target's last attempt when its connection failed in the same way. */
function writeAttempt(tables: Tables, n: number, attempt: Attempt): TableWrite {
  const { attempts } = tables
  const { from, to } = attemptsOf(n)
  let next = from
  if (!wasTried(tables, n)) return attempts.put(from, encodeAttempt(attempt))
  for (const { key, value } of attempts.range({ from, to, reverse: true, limit: LOOK_BACK })) {
    if (next === from) next = Math.min(key + 1, from + MAX_ATTEMPTS - 1)
    const last = decodeAttempt(value)
    if (last.target !== attempt.target) continue
    if (!failedAlike(last, attempt)) break
    return attempts.put(key, encodeAttempt({ ...attempt, count: last.count + attempt.count }))
  }
  return attempts.put(next, encodeAttempt(attempt))
}

function failedAlike(one: Attempt, other: Attempt): boolean {
  const connection = one.outcome === 'unreachable' || one.outcome === 'timed out'
  return connection && one.outcome === other.outcome && one.error === other.error
}
