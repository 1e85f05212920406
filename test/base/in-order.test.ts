import { array, assert, asyncProperty, boolean, scheduler } from 'fast-check'
import { expect, it } from 'vitest'
import { createOrder } from '../../src/base/in-order.js'

it('settles work in the order in which it was given, whatever the order in which it ends', async () => {
  await assert(
    asyncProperty(scheduler(), array(boolean(), { maxLength: 20 }), async (schedule, works) => {
      const inOrder = createOrder()
      const settled: number[] = []
      const all = works.map(async (succeeds, i) => {
        const work = succeeds ? Promise.resolve(i) : Promise.reject(new Error(String(i)))
        const result = inOrder(schedule.schedule(work)).then(
          (value) => [value, settled.push(i)],
          (error: Error) => [Number(error.message), settled.push(i)],
        )
        expect((await result)[0]).toBe(i)
      })
      await schedule.waitFor(Promise.all(all))
      expect(settled).toEqual(works.map((_, i) => i))
    }),
  )
})
