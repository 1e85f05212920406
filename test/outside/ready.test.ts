import { describe, expect, it } from 'vitest'
import { faulty, place } from '../kit/place.js'

async function ready({ address }: { readonly address: string }): Promise<unknown> {
  const response = await fetch(`${address}/ready`)
  return { status: response.status, body: await response.json() }
}

const READY = { status: 200, body: { status: 'ready' } }
const AWAY = { status: 503, body: { error: 'Deliveries cannot be stored' } }

describe('GET /ready of a running relay', () => {
  it('is 503 while its disk is ill, without a delivery that fails first, and 200 again afterwards', async ({
    expect,
  }) => {
    const storage = faulty()
    await using here = await place({ host: 'none' })
    const relay = await here.serveWith({ seams: { storage } })
    expect(await ready(relay)).toEqual(READY)
    storage.now('fails')
    await expect.poll(() => ready(relay)).toEqual(AWAY)
    expect(await (await fetch(`${relay.address}/health`)).text()).toBe('{"status":"ok"}')
    expect((await relay.deliver()).status).toBe(503)
    storage.now('works')
    await expect.poll(() => ready(relay)).toEqual(READY)
    expect((await relay.deliver()).status).toBe(200)
    expect(relay.err.match(/\/ready answers .*/g)).toEqual([
      expect.stringMatching(/^\/ready answers 503: ./),
      '/ready answers 200 again',
    ])
    expect((await relay.stop()).code).toBe(0)
  })

  it('turns 503 before relay stops taking deliveries, where a load balancer asks', async () => {
    await using here = await place({ host: 'none' })
    // A process, which ends with the place before the 5 s are over.
    const relay = await here.serveWith({ built: true })
    expect(await ready(relay)).toEqual(READY)
    relay.kill('SIGTERM')
    await relay.says('/ready answers 503 for 5 s')
    expect(await ready(relay)).toEqual({ status: 503, body: { error: 'relay is stopping' } })
    expect((await relay.deliver()).status).toBe(200)
  })
})
