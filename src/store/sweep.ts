import { setImmediate } from 'node:timers/promises'
import type { Clock } from '../base/time.js'
import type { Engine } from './engine.js'
import { isLive } from './record.js'

/** Records looked at per step: well under a millisecond, so that a sweep never holds up a request. */
const STEP = 500

/** Deletes the expired records of a table, step by step; resolves with how many. */
export async function sweep(engine: Engine, table: string, clock: Clock): Promise<number> {
  engine.tidy()
  let swept = 0
  let from: Uint8Array | undefined = new Uint8Array()
  while (from) {
    const rows: { key: Uint8Array; value: Uint8Array }[] = [...engine.range(table, { from, limit: STEP })]
    const expired = rows.filter(({ value }) => !isLive(value, clock())).map(({ key }) => key)
    if (expired.length > 0) swept += await removeExpired(engine, table, expired, clock)
    from = rows.length < STEP ? undefined : after(rows.at(-1)?.key)
    await setImmediate()
  }
  return swept
}

/** Looks again: a record may have been renewed since it was read. */
function removeExpired(
  engine: Engine,
  table: string,
  keys: readonly Uint8Array[],
  clock: Clock,
): Promise<number> {
  return engine.transact(() => {
    const gone = keys.filter((key) => {
      const record = engine.get(table, key)
      return record !== undefined && !isLive(record, clock())
    })
    return { result: gone.length, writes: gone.map((key) => ({ table, key, value: undefined })) }
  })
}

/** The smallest key there can be behind `key`. */
function after(key: Uint8Array = new Uint8Array()): Uint8Array {
  return Buffer.concat([key, Buffer.of(0)])
}
