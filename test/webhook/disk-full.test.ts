import { randomBytes } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { openJournal } from '../../src/journal/open.js'
import { openDatabase } from '../../src/store/open.js'
import { emptyFolder } from '../helpers/context.js'
import { type Answer, githubDelivery, post } from '../helpers/delivery.js'
import { startServe } from './programs/start.js'

/** No file of the process may grow beyond 4 MiB, in the 512-byte blocks that POSIX counts. */
const SMALL_DISK = ['sh', '-c', 'ulimit -f 8192; exec "$@"', 'sh']

const OK = { status: 200, type: 'application/json', body: '{"ok":true}' }
const NOT_STORED = { status: 503, type: 'application/json', body: '{"error":"Delivery could not be stored"}' }

describe('a full disk', () => {
  it('is answered 503, and harms neither the process nor what was stored', async () => {
    const folder = emptyFolder()
    const bodies: string[] = []
    const answers: Answer[] = []
    {
      await using served = await startServe(folder, SMALL_DISK)
      while (answers.at(-1)?.status !== 503 && answers.length < 200) {
        const body = JSON.stringify(randomBytes(40_000).toString('hex'))
        bodies.push(body)
        answers.push(await post(served.webhook, githubDelivery({ id: `${answers.length}`, body })))
      }
      const full = answers.length - 1
      expect(answers).toEqual([...answers.slice(0, full).map(() => OK), NOT_STORED])
      expect(full).toBeGreaterThan(10)
      const more = Array.from({ length: 8 }, () => githubDelivery({ body: bodies[full] ?? '' }))
      expect(await Promise.all(more.map((request) => post(served.webhook, request)))).toEqual(
        more.map(() => NOT_STORED),
      )
      expect(await (await fetch(`${served.url}/health`)).text()).toBe('{"status":"ok"}')
      expect(await post(served.webhook, githubDelivery({ id: '0', secret: 'other' }))).toMatchObject({
        status: 401,
      })
    }
    await using database = await openDatabase({ kind: 'file', folder })
    const journal = openJournal(database)
    const stored = [...journal.entries()].map(({ deliveryId, body }) => [
      deliveryId,
      Buffer.from(body).toString(),
    ])
    expect(stored).toEqual(bodies.slice(0, -1).map((body, i) => [`${i}`, body]))
  }, 60_000)
})
