import { beforeAll, describe, expect, it } from 'vitest'
import { start } from '../programs/start.js'
import { DAMAGES, damagedCopy } from './damage.js'
import { makeJournal, type Profiles } from './full-journal.js'

/** Deliveries; `programs/read-damaged.ts` reads as many. */
const COUNT = 600
/** Copies of each kind. More with RELAY_DAMAGED_COPIES. */
const COPIES = Number(process.env['RELAY_DAMAGED_COPIES'] ?? 5)
/** No call may take longer, in milliseconds. */
const LIMIT_MS = 15_000
const CANNOT_BE_USED =
  /^\w+: storage: The database \/.*\/relay\.db cannot be used: it is (?:damaged|not a database, or is damaged at its beginning)\. .*relay doctor/

/** What `programs/read-damaged.ts` says of a copy. */
interface Report {
  readonly opened: boolean
  readonly failures: readonly string[]
  /** Readable deliveries that a way of reading did not serve. */
  readonly missed?: Readonly<Record<string, number>>
  readonly readable: number
  readonly logged?: number
  readonly repeated?: number
  readonly slowest: number
}

let profiles: Profiles
beforeAll(async () => {
  profiles = await makeJournal(COUNT)
})

describe.each(DAMAGES)('a database with %s', (damage) => {
  it('neither ends the process nor hides what can be read', { timeout: 120_000 }, async () => {
    const folder = damage === 'damaged log' ? profiles.crashed : profiles.closed
    await using program = start('store/programs/read-damaged', [profiles.closed])
    await program.line()
    let harmed = 0
    const problems: string[] = []
    for (let seed = 1; seed <= COPIES; seed++) {
      program.tell(damagedCopy(folder, damage, seed))
      const report: Report = JSON.parse(await program.line())
      problems.push(...problemsOf(report).map((problem) => `${damage} ${seed}: ${problem}`))
      if (report.readable < COUNT) harmed++
    }
    expect(problems).toEqual([])
    // The damage was none to what is read in a few copies at most.
    expect(harmed).toBeGreaterThan(COPIES / 3)
  })
})

function problemsOf({
  opened,
  failures,
  missed = {},
  readable,
  logged = 0,
  repeated,
  slowest,
}: Report): string[] {
  // Reading may fail only where there is nothing to read.
  const mayFail = opened && readable > 0 ? /^(?:waiting|failed|event|repo|append|sweep|put|close):/ : /^/
  return [
    ...failures.filter((failure) => !CANNOT_BE_USED.test(failure) || !mayFail.test(failure)),
    ...Object.entries(missed).flatMap(([way, count]) => (count > 0 ? [`${way} misses ${count}`] : [])),
    ...(logged > 21 || (repeated ?? 0) > 0 ? [`${logged} lines logged, ${repeated} again`] : []),
    ...(slowest > LIMIT_MS ? [`a call took ${slowest} ms`] : []),
  ]
}
