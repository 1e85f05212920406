import { expect, describe, it } from 'vitest'
import { takeLease, oneAtATimeForLong } from '../../src/store/lease.js'
import { openKind } from './kinds.js'

const KEY = 'a-lock'

describe('a lease', () => {
  it('ends at its time unless it is renewed, and cannot be renewed then', async () => {
    let now = 1000
    const clock = () => now
    await using database = await openKind('memory', undefined, clock)
    const take = () => takeLease(database.store, KEY, { lifetime: 100, clock })
    const first = await take()
    expect(first?.end).toBe(1100)
    now = 1099
    expect([await first?.renew(), await take()]).toEqual([true, undefined])
    now = 1198
    expect(await take()).toBeUndefined()
    now = 1199
    expect(await first?.renew()).toBe(false)
    const second = await take()
    expect([second?.end, await first?.renew()]).toEqual([1299, false])
    await first?.release()
    expect(await take()).toBeUndefined()
    await second?.release()
    expect(await take()).toBeDefined()
  })
})

describe('a long task', () => {
  it('runs once the one before has ended, also when that fails', async () => {
    await using database = await openKind('memory')
    const order: string[] = []
    let finish = (): void => {}
    const work = async (): Promise<void> => {
      order.push('first begins')
      await new Promise<void>((resolve) => (finish = resolve))
      order.push('first fails')
      throw new Error('failed')
    }
    const first = oneAtATimeForLong(database.store, KEY, { onBusy: () => order.push('unexpected'), work })
    const failed = first.catch((error: unknown) => order.push(String(error)))
    await new Promise<void>((resolve) => {
      const busy = (pid: number | undefined): void => {
        order.push(`busy: ${pid === process.pid}`)
        finish()
        resolve()
      }
      const next = { onBusy: busy, work: async () => void order.push('second') }
      void oneAtATimeForLong(database.store, KEY, next).then(() => order.push('done'))
    })
    await failed
    await expect
      .poll(() => order)
      .toEqual(['first begins', 'busy: true', 'first fails', 'Error: failed', 'second', 'done'])
    expect(await database.store.get(KEY)).toBeUndefined()
  })

  it('is not waited for once the signal aborts', async () => {
    await using database = await openKind('memory')
    await database.store.put(KEY, 'held')
    const stop = new AbortController()
    const onBusy = (pid: number | undefined): void => stop.abort(new Error(`${pid}`))
    const task = { onBusy, signal: stop.signal, work: async () => 'ran' }
    await expect(oneAtATimeForLong(database.store, KEY, task)).rejects.toMatchObject({ name: 'AbortError' })
  })
})
