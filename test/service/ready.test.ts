import { expect, it } from 'vitest'
import { readMetrics } from '../kit/metrics.js'
import { describeWith } from '../kit/needs.js'
import { place } from '../kit/place.js'
import { closedPort } from '../kit/ports.js'
import { ownServer } from '../kit/postgres.js'

describeWith('postgres', 'a relay whose PostgreSQL is away', () => {
  it('answers 503 at /ready and has no queues at /metrics, and is well again by itself', async () => {
    await using server = await ownServer()
    await using here = await place({ host: 'none', env: server.env })
    const relay = await here.serve('--metrics', '--forward', `app=http://127.0.0.1:${await closedPort()}`)
    const ready = async (): Promise<unknown> => {
      const response = await fetch(`${relay.address}/ready`)
      return { status: response.status, body: await response.json() }
    }
    const state = async (): Promise<unknown> => {
      const { relay_queue_deliveries: queues, relay_ready: isReady } = await readMetrics(relay.address)
      return { queues: queues?.values, isReady: isReady?.values[''] }
    }
    const isReady = { status: 200, body: { status: 'ready' } }
    expect(await ready()).toEqual(isReady)
    expect(await state()).toEqual({ queues: { 'target=app': 0 }, isReady: 1 })
    await server.stop()
    await expect.poll(ready).toEqual({ status: 503, body: { error: 'Deliveries cannot be stored' } })
    await expect.poll(state).toEqual({ queues: {}, isReady: 0 })
    await server.start()
    await expect.poll(ready).toEqual(isReady)
    expect((await relay.deliver()).status).toBe(200)
    await expect.poll(state).toEqual({ queues: { 'target=app': 1 }, isReady: 1 })
  })
})
