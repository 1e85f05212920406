import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { waitingOf } from '../kit/journal.js'
import { place } from '../kit/place.js'
import { receiver, valuesOf } from '../kit/receiver.js'
import { REPEAT } from '../kit/repeat.js'
import { idsOf } from '../kit/service.js'

const ROUNDS = 4 * REPEAT
const EACH = 8
/** Every so many deliveries one asks for another attempt, which comes a second later. */
const TROUBLE = 5
/** Milliseconds after which a round ends: at any moment of a delivery, or of the wait for an attempt. */
const ROUND = 1500

describe('a target with strict order', () => {
  it(
    'gets no delivery before the one before it has ended, through failures, restarts, SIGKILL and SIGSTOP',
    async () => {
      const troubled = new Set<string>()
      await using target = await receiver(async (request) => {
        const [id = ''] = valuesOf(request, 'X-GitHub-Delivery')
        await sleep(30)
        if (Number(id) % TROUBLE !== 0 || troubled.has(id)) return 200
        troubled.add(id)
        return 503
      })
      await using here = await place({ host: 'none' })
      here.configure({ routes: [{ name: 'app', forward: target.url, ordered: true }] })
      const ids = Array.from({ length: ROUNDS * EACH }, (_, i) => String(i).padStart(6, '0'))
      for (let round = 0; round < ROUNDS; round++) {
        await using relay = await here.serveWith({ built: true })
        for (const id of ids.slice(round * EACH, (round + 1) * EACH)) await relay.deliver({ id })
        await sleep(Math.random() * ROUND)
        // As a machine that sleeps, or Ctrl-Z: timers and answers are behind when it goes on.
        relay.kill('SIGSTOP')
        await sleep(Math.random() * ROUND)
        relay.kill('SIGCONT')
        await sleep(Math.random() * ROUND)
        await relay.stop(round % 2 === 0 ? 'SIGKILL' : 'SIGTERM')
      }
      await using last = await here.serveWith({ built: true })
      await expect.poll(() => waitingOf(here), { timeout: 60_000, interval: 100 }).toEqual([])
      await last.stop()
      const received = idsOf(target)
      // None comes, for the first time or again, after a later one has come.
      expect(received).toEqual(received.toSorted())
      expect([...new Set(received)]).toEqual(ids)
      expect(troubled.size).toBe(Math.ceil(ids.length / TROUBLE))
      // Beside those, a restart can repeat the one under way.
      expect(received.length).toBeLessThanOrEqual(ids.length + troubled.size + ROUNDS)
    },
    120_000 * REPEAT,
  )
})
