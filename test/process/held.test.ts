import path from 'node:path'
import { expect, it } from 'vitest'
import { hold } from '../kit/disk.js'
import { entriesOf } from '../kit/journal.js'
import { place } from '../kit/place.js'

/** Milliseconds within which a delivery is answered while another process does not end its write: 3.5 s, and the machine's share. */
const LIMIT = 6000

it('a command that was stopped in the middle of a write holds deliveries up for 3.5 s, then 503, and /health never', async () => {
  await using here = await place({ host: 'none' })
  const relay = await here.serveWith({ built: true })
  expect((await relay.deliver({ id: 'before' })).status).toBe(200)

  const stopped = hold(path.join(here.home, 'default'))
  const began = performance.now()
  const answered = new AbortController()
  const delivered = relay.deliver({ id: 'meanwhile' }).then(({ status }) => {
    answered.abort()
    return { status, after: performance.now() - began }
  })
  let slowest = 0
  while (!answered.signal.aborted) {
    const asked = performance.now()
    expect((await fetch(`${relay.address}/health`)).status).toBe(200)
    slowest = Math.max(slowest, performance.now() - asked)
  }
  const { status, after } = await delivered
  expect(status).toBe(503)
  expect(after).toBeGreaterThan(3000)
  expect(after).toBeLessThan(LIMIT)
  expect(slowest).toBeLessThan(1000)
  await relay.says('another process writes to it and does not end')

  stopped.release()
  expect((await relay.deliver({ id: 'after' })).status).toBe(200)
  expect((await entriesOf(here)).map(({ deliveryId }) => deliveryId)).toEqual(['before', 'after'])
})
