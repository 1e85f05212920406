import { expect, it } from 'vitest'
import { openDatabase } from '../../src/store/open.js'
import type { Sql } from '../../src/store/sql.js'
import { startRelay } from '../../src/testing/index.js'
import { readMetrics } from '../kit/metrics.js'
import { closedPort } from '../kit/ports.js'
import { RecordingLog } from './recording-log.js'

it('/metrics reads the queues once for all that ask at a time; without them, it answers all the rest in time', async () => {
  await using inner = await openDatabase({ kind: 'memory', folder: '' })
  let mode: 'works' | 'hangs' | 'fails' = 'works'
  let reads = 0
  const query: typeof inner.sql.query = async (sql, values) => {
    if (!sql.includes('AS oldest FROM target')) return inner.sql.query(sql, values)
    reads++
    if (mode === 'hangs') await new Promise(() => {})
    return inner.sql.query(mode === 'fails' ? 'not sql' : sql, values)
  }
  const { sql: real } = inner
  const sql: Sql = {
    query,
    write: (work, options) => real.write(work, options),
    usedBytes: () => real.usedBytes(),
    shrink: () => real.shrink(),
    [Symbol.asyncDispose]: async () => {},
  }
  const log = new RecordingLog()
  const options = {
    database: { ...inner, sql },
    log,
    settings: { metrics: true },
    forward: [`app=${await closedPort()}`],
  }
  await using working = await startRelay(options)
  // The dispatcher has read them at its start.
  reads = 0
  const all = await Promise.all(Array.from({ length: 20 }, () => readMetrics(working.url)))
  expect(reads).toBe(1)
  expect(all.map((one) => one['relay_queue_deliveries']?.values)).toEqual(
    all.map(() => ({ 'target=app': 0 })),
  )
  await working[Symbol.asyncDispose]()
  for (const next of ['fails', 'hangs'] as const) {
    mode = 'works'
    await using relay = await startRelay(options)
    mode = next
    const metrics = await readMetrics(relay.url)
    expect(metrics['relay_queue_deliveries']?.values).toEqual({})
    expect(metrics['relay_queue_oldest_seconds']?.values).toEqual({})
    expect(metrics['relay_ready']?.values).toEqual({ '': 1 })
  }
  expect(log.lines.filter((line) => line.includes('/metrics'))).toEqual([
    expect.stringMatching(/^warn \/metrics has no queues: The database /),
    'warn /metrics has no queues: Timed out',
  ])
})
