import { describe, expect, it } from 'vitest'
import { silentLog } from '../../src/base/log.js'
import type { Decision, RowWrite } from '../../src/store/engine.js'
import { openFileEngine } from '../../src/store/file.js'
import { createGroup } from '../../src/store/group.js'
import { emptyFolder } from '../helpers/context.js'

const row = (...key: number[]): RowWrite => ({ table: 'rows', key: Buffer.from(key), value: Buffer.of(1) })
/** More than LMDB takes. */
const UNWRITABLE: RowWrite = { table: 'rows', key: Buffer.alloc(5000), value: Buffer.of(1) }

/** A group whose transactions end when the test says so, and what was applied in each. */
function rig() {
  const transactions: { readonly applied: RowWrite[]; readonly commit: () => void }[] = []
  const started: (() => void)[] = []
  let applied: RowWrite[] = []
  const transact = createGroup({
    apply: (writes) => void applied.push(...writes),
    transaction: (work) =>
      new Promise((resolve) => {
        applied = []
        work()
        transactions.push({ applied, commit: resolve })
        started.shift()?.()
      }),
  })
  const next = (): Promise<void> => new Promise((resolve) => started.push(resolve))
  return { transact, transactions, next }
}

const decided = <T>(result: T, ...writes: RowWrite[]): (() => Decision<T>) => {
  return () => ({ result, writes })
}

describe('decisions', () => {
  it('of one turn share a transaction; those that come meanwhile share the next, 64 at most', async () => {
    const { transact, transactions, next } = rig()
    const first = next()
    const early = [transact(decided(1, row(1))), transact(decided(2, row(2)))]
    await first
    const late = Array.from({ length: 65 }, (_, i) => transact(decided(i, row(9, i))))
    const second = next()
    transactions[0]?.commit()
    expect(await Promise.all(early)).toEqual([1, 2])
    await second
    const third = next()
    transactions[1]?.commit()
    await third
    transactions[2]?.commit()
    expect(await Promise.all(late)).toEqual(Array.from({ length: 65 }, (_, i) => i))
    expect(transactions.map(({ applied }) => applied.length)).toEqual([2, 64, 1])
  })

  it('are told of nothing before it is durable', async () => {
    const { transact, transactions, next } = rig()
    const started = next()
    let told = false
    const outcome = transact(decided('stored', row(1))).then((result) => {
      told = true
      return result
    })
    await started
    await new Promise(setImmediate)
    expect(told).toBe(false)
    transactions[0]?.commit()
    expect(await outcome).toBe('stored')
  })
})

describe('in a file', () => {
  it('each sees what those before it wrote', async () => {
    await using engine = await openFileEngine(emptyFolder(), silentLog)
    engine.open('rows')
    const add = () =>
      engine.transact(() => ({ result: engine.count('rows'), writes: [row(engine.count('rows'))] }))
    expect(await Promise.all(Array.from({ length: 100 }, add))).toEqual(
      Array.from({ length: 100 }, (_, i) => i),
    )
  })

  it('one that throws, and one whose rows cannot be written, stop nobody and write nothing', async () => {
    await using engine = await openFileEngine(emptyFolder(), silentLog)
    engine.open('rows')
    const undecided = (): never => {
      throw new Error('undecided')
    }
    const outcomes = await Promise.allSettled([
      engine.transact(decided('a', row(1))),
      engine.transact(undecided),
      engine.transact(decided('b', row(2), UNWRITABLE)),
      engine.transact(decided('c', row(3))),
    ])
    expect(outcomes.map((outcome) => (outcome.status === 'fulfilled' ? outcome.value : 'failed'))).toEqual([
      'a',
      'failed',
      'failed',
      'c',
    ])
    expect([...engine.range('rows', {})].map(({ key }) => [...key])).toEqual([[1], [3]])
  })
})
