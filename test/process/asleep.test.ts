import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { place } from '../kit/place.js'
import { receiver, valuesOf } from '../kit/receiver.js'
import { stopBetweenWrites } from '../kit/stopped.js'

/** Time limit of an attempt, and how long relay stands still. Milliseconds. */
const [LIMIT, ASLEEP] = [2000, 4000]

it('an attempt in flight has the answer that came while the machine slept, whatever its time limit', async () => {
  const answered = new EventTarget()
  await using target = await receiver(async (request) => {
    if (valuesOf(request, 'X-GitHub-Delivery')[0] === 'slow') await once(answered, 'now')
    return 200
  })
  await using here = await place({ host: 'none' })
  const flags = ['--forward', `app=${target.url}`, '--timeout', `${LIMIT / 1000}s`]
  const relay = await here.serveWith({ built: true }, ...flags)
  await relay.deliver({ id: 'slow' })
  await target.has(1)
  await stopBetweenWrites(relay, here)
  answered.dispatchEvent(new Event('now'))
  await sleep(ASLEEP)
  relay.kill('SIGCONT')
  const attempt = { type: 'attempt', n: 1, outcome: 'succeeded', status: 200 }
  expect(await relay.object({ type: 'attempt' })).toMatchObject(attempt)
  await relay.deliver({ id: 'next' })
  await relay.object({ type: 'attempt', n: 2 })
  expect(target.received.flatMap((each) => valuesOf(each, 'X-GitHub-Delivery'))).toEqual(['slow', 'next'])
})
