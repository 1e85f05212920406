import { setImmediate as turn } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { silentLog } from '../../src/base/log.js'
import type { Decision, RowWrite } from '../../src/store/engine.js'
import { openFileEngine } from '../../src/store/file.js'
import { Group, type Version } from '../../src/store/group.js'
import { emptyFolder } from '../helpers/context.js'

const row = (...key: number[]): RowWrite => ({ table: 'rows', key: Buffer.from(key), value: Buffer.of(1) })
/** More than LMDB takes. */
const UNWRITABLE: RowWrite = { table: 'rows', key: Buffer.alloc(5000), value: Buffer.of(1) }

interface Commit {
  readonly writes: readonly RowWrite[]
  /** As if the disk were done, and nobody else had written unless `others` says so. */
  end(): Promise<void>
  fail(reason: Error): Promise<void>
}

/** A group over a disk that is done when the test says so. */
function rig() {
  const commits: Commit[] = []
  const excluded: (readonly RowWrite[])[] = []
  let version: Version
  let readable = true
  const group = new Group({
    look() {
      if (!readable) throw new Error('unreadable')
      return version
    },
    commit: (writes, expected, next) =>
      new Promise((resolve, reject) => {
        commits.push({
          writes,
          async end() {
            const isExpected = version === expected
            if (isExpected) version = next
            resolve(isExpected)
            await turn()
          },
          async fail(reason) {
            reject(reason)
            await turn()
          },
        })
      }),
    async exclude(decide, next) {
      excluded.push(decide())
      version = next
    },
    check() {},
  })
  const othersWrite = (): void => void (version = Math.random())
  const setReadable = (can: boolean): void => void (readable = can)
  const transact = <T>(decide: () => Decision<T>): Promise<T> => group.transact(decide)
  return { group, transact, commits, excluded, othersWrite, setReadable }
}

const decided = <T>(result: T, ...writes: RowWrite[]): (() => Decision<T>) => {
  return () => ({ result, writes })
}
const keysOf = (commits: readonly Commit[]): number[][] =>
  commits.map(({ writes }) => writes.map(({ key }) => key[0] ?? -1))

describe('decisions', () => {
  it('of one turn share a commit; two are under way, and what comes meanwhile shares the next, 64 at most', async () => {
    const { transact, commits } = rig()
    const first = [transact(decided('a', row(1))), transact(decided('b', row(2)))]
    await turn()
    const second = transact(decided('c', row(3)))
    await turn()
    const rest = Array.from({ length: 65 }, (_, i) => transact(decided(i, row(4))))
    await turn()
    expect(keysOf(commits)).toEqual([[1, 2], [3]])
    await commits[0]?.end()
    expect(await Promise.all(first)).toEqual(['a', 'b'])
    await turn()
    expect(commits.map(({ writes }) => writes.length)).toEqual([2, 1, 64])
    await commits[1]?.end()
    expect(await second).toBe('c')
    await commits[2]?.end()
    await commits[3]?.end()
    expect(await Promise.all(rest)).toEqual(Array.from({ length: 65 }, (_, i) => i))
    expect(commits.map(({ writes }) => writes.length)).toEqual([2, 1, 64, 1])
  })

  it('are told of nothing before it is durable, nor of what they saw of others before that is', async () => {
    const { group, commits } = rig()
    const told: string[] = []
    const write = group.transact(decided('written', row(1))).then((word) => told.push(word))
    const look = group
      .transact(() => ({
        result: group.written?.get('rows', Buffer.of(1)) ? 'seen' : 'not seen',
        writes: [],
      }))
      .then((word) => told.push(word))
    await turn()
    await turn()
    expect(told).toEqual([])
    await commits[0]?.end()
    await Promise.all([write, look])
    expect(told).toEqual(['written', 'seen'])
    expect(group.written).toBeUndefined()
  })

  it('are made anew, in their order, when others have written meanwhile', async () => {
    const { group, commits, othersWrite } = rig()
    const transactions: object[] = []
    const decide = (key: number) =>
      group.transact((transaction) => {
        transactions.push(transaction)
        return decided(key, row(key))()
      })
    const first = decide(1)
    await turn()
    const second = decide(2)
    await turn()
    othersWrite()
    await commits[0]?.end()
    const third = decide(3)
    await commits[1]?.end()
    await turn()
    await commits[2]?.end()
    expect(await Promise.all([first, second, third])).toEqual([1, 2, 3])
    expect(keysOf(commits)).toEqual([[1], [2], [1, 2, 3]])
    const [before, , after] = transactions
    expect(transactions.map((transaction) => transaction === before)).toEqual([
      true,
      true,
      false,
      false,
      false,
    ])
    expect(transactions.slice(2).every((transaction) => transaction === after)).toBe(true)
  })

  it('keep the others out after three times in vain', async () => {
    const { transact, commits, excluded, othersWrite } = rig()
    const outcome = transact(decided('done', row(1)))
    for (const time of [0, 1, 2]) {
      await turn()
      othersWrite()
      await commits[time]?.end()
    }
    await turn()
    expect(await outcome).toBe('done')
    expect(commits.length).toBe(3)
    expect(excluded).toEqual([[row(1)]])
  })

  it('fail with their commit; one that was made after them is made anew', async () => {
    const { group, commits } = rig()
    const failing = group.transact(decided('a', row(1)))
    await turn()
    const after = group.transact(() => {
      const seen = group.written?.get('rows', Buffer.of(1)) !== undefined
      return { result: seen, writes: [row(2)] }
    })
    await turn()
    const failed = failing.catch(String)
    await commits[0]?.fail(new Error('full'))
    expect(await failed).toBe('Error: full')
    await commits[1]?.end()
    await turn()
    await commits[2]?.end()
    expect(await after).toBe(false)
    expect(keysOf(commits)).toEqual([[1], [2], [2]])
  })

  it('fail when the state cannot be read, and those after them do not', async () => {
    const { transact, commits, setReadable } = rig()
    setReadable(false)
    const failing = transact(decided('a', row(1))).catch(String)
    expect(await failing).toBe('Error: unreadable')
    setReadable(true)
    const after = transact(decided('b', row(2)))
    await turn()
    await commits[0]?.end()
    expect(await after).toBe('b')
    expect(keysOf(commits)).toEqual([[2]])
  })

  it('are refused when 4,096 wait for a disk that hangs', async () => {
    const { transact } = rig()
    const hanging = [transact(decided('a', row(1)))]
    await turn()
    hanging.push(transact(decided('b', row(2))))
    await turn()
    for (let i = 0; i < 4096; i++) hanging.push(transact(decided('c', row(3))))
    await expect(transact(decided('d', row(4)))).rejects.toMatchObject({ kind: 'storage' })
    expect(hanging.length).toBe(4098)
  })

  it('are over when the group is idle', async () => {
    const { group, transact, commits } = rig()
    await group.idle()
    let idle = false
    const outcome = transact(decided('a', row(1)))
    const ended = group.idle().then(() => (idle = true))
    await turn()
    expect(idle).toBe(false)
    await commits[0]?.end()
    await ended
    expect(await outcome).toBe('a')
  })
})

describe('in a file', () => {
  it('each sees what those before it wrote', async () => {
    await using engine = await openFileEngine(emptyFolder(), silentLog)
    engine.open('rows')
    const count = (): number => [...engine.range('rows', {})].length
    const add = () => engine.transact(() => ({ result: count(), writes: [row(count())] }))
    expect(await Promise.all(Array.from({ length: 100 }, add))).toEqual(
      Array.from({ length: 100 }, (_, i) => i),
    )
  })

  it('one that writes nothing does not hold up closing', async () => {
    const engine = await openFileEngine(emptyFolder(), silentLog)
    const decision = engine.transact(decided('nothing'))
    await engine[Symbol.asyncDispose]()
    expect(await decision).toBe('nothing')
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
