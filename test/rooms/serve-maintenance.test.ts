import { EventEmitter, once } from 'node:events'
import { describe, expect, it } from 'vitest'
import { RelayError } from '../../src/base/errors.js'
import type { Retention } from '../../src/journal/journal.js'
import { type MaintenanceParts, startMaintenance } from '../../src/serve/maintenance.js'

const MIB = 1_048_576
/** 2 % of this is 2 MiB. */
const KEEP_MAX = 100 * MIB

/** Maintenance of a database and a journal that record what is asked of them. */
function rig({
  interval = 60_000,
  sweep = async () => 0,
}: {
  interval?: number
  sweep?: () => Promise<number>
}) {
  const calls: string[] = []
  const events = new EventEmitter()
  const retentions: Retention[] = []
  let shrinks = 3
  const call = (name: string): void => {
    calls.push(name)
    events.emit(name)
  }
  const parts = {
    database: {
      store: { sweep: async () => call('expire') },
      rotate: async () => call('rotate'),
      sql: {
        async shrink() {
          call('shrink')
          return --shrinks > 0
        },
      },
    },
    journal: {
      async sweep(retention: Retention) {
        retentions.push(retention)
        call('sweep')
        return sweep()
      },
    },
    retention: { keep: 1000, keepMax: KEEP_MAX },
    log: { debug() {}, info() {}, warn() {}, error: (message: string) => call(message) },
    interval,
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- only these members are used
  const maintenance = startMaintenance(parts as unknown as MaintenanceParts)
  return { maintenance, calls, retentions, next: (name: string) => once(events, name) }
}

describe('maintenance', () => {
  it('removes expired records and sweeps the journal at the start, until it ends', async () => {
    const { maintenance, calls, retentions, next } = rig({})
    await next('sweep')
    expect(calls).toEqual(['expire', 'rotate', 'sweep'])
    expect(retentions).toMatchObject([{ keep: 1000, keepMax: KEEP_MAX }])
    await maintenance[Symbol.asyncDispose]()
    expect(calls).toEqual(['expire', 'rotate', 'sweep'])
    expect(retentions[0]?.signal?.aborted).toBe(true)
  })

  it('sweeps again when 2 % of the size to keep was added, never twice at once', async () => {
    let end = (): void => {}
    const sweep = () => new Promise<number>((resolve) => (end = () => resolve(0)))
    const { maintenance, calls, next } = rig({ sweep })
    await next('sweep')
    end()
    await new Promise(setImmediate)
    maintenance.added(MIB)
    await new Promise(setImmediate)
    expect(calls).toEqual(['expire', 'rotate', 'sweep'])
    const swept = next('sweep')
    maintenance.added(MIB)
    await swept
    maintenance.added(5 * MIB)
    maintenance.added(5 * MIB)
    await new Promise(setImmediate)
    expect(calls).toEqual(['expire', 'rotate', 'sweep', 'sweep'])
    const again = next('sweep')
    end()
    await again
    expect(calls).toEqual(['expire', 'rotate', 'sweep', 'sweep', 'sweep'])
    end()
    await maintenance[Symbol.asyncDispose]()
  })

  it('shrinks the file in steps after an interval in which nothing was added', async () => {
    const { maintenance, calls, next } = rig({ interval: 20 })
    await next('sweep')
    maintenance.added(1)
    await next('expire')
    expect(calls).not.toContain('shrink')
    for (let i = 0; i < 3; i++) await next('shrink')
    await next('expire')
    expect(calls.slice(0, 10)).toEqual([
      'expire',
      'rotate',
      'sweep',
      'expire',
      'rotate',
      'sweep',
      'shrink',
      'shrink',
      'shrink',
      'expire',
    ])
    await maintenance[Symbol.asyncDispose]()
  })

  it('logs what fails, and continues', async () => {
    const sweep = () => Promise.reject(new RelayError('storage', 'the disk is full'))
    const { maintenance, calls, next } = rig({ interval: 20, sweep })
    await next('sweep')
    await next('sweep')
    await maintenance[Symbol.asyncDispose]()
    expect(calls.slice(0, 4)).toEqual(['expire', 'rotate', 'sweep', 'the disk is full'])
  })
})
