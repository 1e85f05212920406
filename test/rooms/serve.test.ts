import { EventEmitter, once } from 'node:events'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { RelayError } from '../../src/base/errors.js'
import { silentLog } from '../../src/base/log.js'
import { serviceSettings } from '../../src/cli/commands/serve/settings.js'
import { openSettings } from '../../src/cli/settings/read.js'
import type { Retention } from '../../src/journal/journal.js'
import { type MaintenanceParts, startMaintenance } from '../../src/serve/maintenance.js'
import { Readiness } from '../../src/serve/readiness.js'
import { start } from '../../src/serve/start.js'
import { emptyFolder } from '../kit/folder.js'
import { closedPort } from '../kit/ports.js'
import { testShell } from './cli-shell.js'

const MIB = 1_048_576
/** 2 % of this is 2 MiB. */
const KEEP_MAX = 100 * MIB
const ROUND = ['expire', 'rotate', 'sweep']

/** Maintenance of a database and a journal that record what is asked of them. */
function rig({ interval = 60_000, sweep = async () => 0, used = async () => 0 } = {}) {
  const calls: string[] = []
  const events = new EventEmitter()
  const retentions: Retention[] = []
  let shrinks = 3
  const call = (name: string): void => {
    calls.push(name)
    events.emit(name)
  }
  const shrink = async (): Promise<boolean> => {
    call('shrink')
    return --shrinks > 0
  }
  const parts = {
    database: {
      store: { sweep: async () => call('expire') },
      rotate: async () => call('rotate'),
      sql: { shrink, usedBytes: used },
    },
    journal: {
      async sweep(retention: Retention) {
        retentions.push(retention)
        call('sweep')
        return sweep()
      },
      counts: async () => new Map([['a', { waiting: 7 }]]),
    },
    retention: { keep: 1000, keepMax: KEEP_MAX },
    log: { ...silentLog, error: call, warn: call },
    warning: (waiting: number) => `larger than --keep-max: there are ${waiting}`,
    interval,
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- only these members are used
  const maintenance = startMaintenance(parts as unknown as MaintenanceParts)
  return { maintenance, calls, retentions, next: (name: string) => once(events, name) }
}

describe('maintenance', () => {
  it('sweeps again when 2 % of the size to keep was added, never twice at once', async () => {
    let end = (): void => {}
    const sweep = () => new Promise<number>((resolve) => (end = () => resolve(0)))
    const { maintenance, calls, next } = rig({ sweep })
    await next('sweep')
    end()
    await new Promise(setImmediate)
    maintenance.added(MIB)
    await new Promise(setImmediate)
    expect(calls).toEqual(ROUND)
    const swept = next('sweep')
    maintenance.added(MIB)
    await swept
    maintenance.added(5 * MIB)
    maintenance.added(5 * MIB)
    await new Promise(setImmediate)
    expect(calls).toEqual([...ROUND, 'sweep'])
    const again = next('sweep')
    end()
    await again
    end()
    await maintenance[Symbol.asyncDispose]()
    expect(calls).toEqual([...ROUND, 'sweep', 'sweep'])
  })

  it('shrinks the file in steps after an interval in which nothing was added', async () => {
    const { maintenance, calls, next } = rig({ interval: 20 })
    await next('sweep')
    maintenance.added(1)
    await next('expire')
    for (let i = 0; i < 3; i++) await next('shrink')
    await next('expire')
    await maintenance[Symbol.asyncDispose]()
    const steps = ['shrink', 'shrink', 'shrink', 'expire']
    expect(calls.slice(0, 10)).toEqual([...ROUND, ...ROUND, ...steps])
  })

  it('warns once while what waits is larger than the size to keep', async () => {
    const sizes = [KEEP_MAX + 1, KEEP_MAX + 2, KEEP_MAX]
    const { maintenance, calls, next } = rig({ interval: 5, used: async () => sizes.shift() ?? KEEP_MAX + 3 })
    for (let i = 0; i < 5; i++) await next('sweep')
    await maintenance[Symbol.asyncDispose]()
    const warnings = calls.filter((call) => call.includes('larger than --keep-max'))
    expect(warnings).toHaveLength(2)
    expect(warnings[0]).toContain('there are 7')
  })

  it('logs what fails, and continues', async () => {
    const sweep = () => Promise.reject(new RelayError('storage', 'the disk is full'))
    const { maintenance, calls, next } = rig({ interval: 20, sweep })
    await next('sweep')
    await next('sweep')
    await maintenance[Symbol.asyncDispose]()
    expect(calls.slice(0, 4)).toEqual([...ROUND, 'the disk is full'])
  })
})

describe('readiness', () => {
  afterEach(() => void vi.useRealTimers())

  it('checks storage once for all that ask meanwhile, however long it takes, and again a second later', async () => {
    vi.useFakeTimers({ toFake: ['performance'] })
    const ends: (() => void)[] = []
    const readiness = new Readiness(silentLog)
    readiness.start({ check: () => new Promise((resolve) => ends.push(resolve)) })
    const ask = () => Promise.all(Array.from({ length: 500 }, () => readiness.check()))
    const first = ask()
    vi.advanceTimersByTime(5000)
    const second = ask()
    ends[0]?.()
    await Promise.all([first, second])
    vi.advanceTimersByTime(999)
    await ask()
    expect(ends).toHaveLength(1)
    vi.advanceTimersByTime(1)
    const third = ask()
    expect(ends).toHaveLength(2)
    ends[1]?.()
    await third
  })

  it('does not wait for storage that hangs, and asks it again only later', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
    let checks = 0
    const readiness = new Readiness(silentLog)
    readiness.start({
      check() {
        checks++
        return new Promise(() => {})
      },
    })
    const asked = Promise.allSettled([readiness.check(), readiness.check()])
    await vi.advanceTimersByTimeAsync(2000)
    const reason = { kind: 'storage', cause: { message: 'storage did not answer within 2 s' } }
    expect([await asked, checks]).toMatchObject([[{ reason }, { reason }], 1])
  })
})

it('a start that fails after the data is open answers the requests that wait for it, and ends at once', async () => {
  const port = String(await closedPort())
  const { shell } = testShell({ env: { RELAY_HOME: emptyFolder(), RELAY_PORT: port } })
  const loaded = await openSettings(shell, {})
  const own = await loaded.read()
  const settings = serviceSettings(
    { own },
    {
      sandbox: false,
      inspect: true,
      readSources: async () => [],
      rereadParts: () => expect.unreachable(),
    },
  )
  const address = `http://127.0.0.1:${port}`
  let waiting: Promise<Response> | undefined
  const complete: typeof settings.complete = async (database) => {
    waiting = fetch(`${address}/webhook`, { method: 'POST', body: '{}' })
    // Its connection was accepted before this one.
    expect((await fetch(`${address}/ready`)).status).toBe(503)
    return settings.complete(database)
  }
  const failure = new RelayError('storage', 'cannot be registered')
  const onTaken = (): never => {
    throw failure
  }
  await expect(start({ ...settings, complete }, { onTaken })).rejects.toBe(failure)
  const answer = await waiting
  expect([answer?.status, await answer?.json()]).toEqual([503, { error: 'relay is stopping' }])
})
