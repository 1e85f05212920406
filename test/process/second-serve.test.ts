import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { begin, finish, githubDelivery, post } from '../kit/delivery.js'
import { entriesOf, waitingOf } from '../kit/journal.js'
import { type Place, place } from '../kit/place.js'
import { receiver, valuesOf } from '../kit/receiver.js'
import { stopBetweenWrites } from '../kit/stopped.js'

/** Fails when one of them is not answered 200. */
async function acknowledged(webhook: string, ids: readonly string[]): Promise<void> {
  const answers = await Promise.all(ids.map((id) => post(webhook, githubDelivery({ id, body: `"${id}"` }))))
  expect(answers.map(({ status }) => status)).toEqual(ids.map(() => 200))
}

/** Sees that the journal has these deliveries once, with their own bodies, numbered from 1: batch by batch, each in any order. */
async function hasBatches(here: Place, ...batches: readonly (readonly string[])[]): Promise<void> {
  const entries = await entriesOf(here)
  expect(entries.map(({ n }) => n)).toEqual(batches.flat().map((_, i) => i + 1))
  for (const { deliveryId, body } of entries) expect(body.toString()).toBe(`"${deliveryId}"`)
  let rest = entries.map(({ deliveryId }) => deliveryId)
  for (const batch of batches) {
    expect(rest.slice(0, batch.length).toSorted()).toEqual(batch.toSorted())
    rest = rest.slice(batch.length)
  }
}

const ids = (who: string): string[] => Array.from({ length: 20 }, (_, i) => `${who}-${i}`)

/** Deliveries that a crash may repeat: the one under way, and 16 whose answers were not yet on disk (docs/forwarding.md). */
const MAX_REPEATED = 17

/** Answers so late that a backlog grows behind it. Milliseconds. */
const SLOW = 15

/** A target that answers slowly, and only from when it is opened, with the numbers of what it got, in order. */
async function slowTarget() {
  let open = (): void => {}
  const opened = new Promise<void>((resolve) => (open = resolve))
  const target = await receiver(async () => {
    await opened
    await sleep(SLOW)
    return 200
  })
  return {
    url: target.url,
    got: () => target.received.map((request) => Number(valuesOf(request, 'X-GitHub-Delivery')[0])),
    open,
    has: (count: number) => target.has(count),
    [Symbol.asyncDispose]: () => target[Symbol.asyncDispose](),
  }
}

const SERVE = ['serve', '--port', '0', '--json']

describe('relay serve', () => {
  it('leaves a served profile alone, exit 1, and takes over what a killed one left', async () => {
    await using here = await place({ host: 'none' })
    const first = await here.serveWith({ built: true })
    const url = first.address
    const second = await here.runWith({ built: true }, ...SERVE)
    expect({ code: second.code, out: second.out }).toEqual({ code: 1, out: '' })
    expect(second.err).toContain(url)
    expect(second.err).toContain(String(first.pid))
    expect(await (await fetch(`${url}/health`)).text()).toBe('{"status":"ok"}')

    await first.stop('SIGKILL')
    const third = await here.serveWith({ built: true })
    expect(third.address).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/)
    expect((await third.stop()).code).toBe(0)
  })
})

describe.concurrent('two processes over one journal', () => {
  it('one of them finishing: it keeps the profile until its last answer, and then the other begins', async () => {
    await using here = await place({ host: 'none' })
    const older = await here.serveWith({ built: true })
    const olderHook = `${older.address}/webhook`
    await acknowledged(olderHook, ids('before'))
    const slow = githubDelivery({ id: 'slow', body: '"slow"' })
    const request = await begin(olderHook, slow)
    older.kill('SIGTERM')
    await older.says('Finishing in-flight work')

    expect(await here.runWith({ built: true }, ...SERVE)).toMatchObject(
      refused('a process that is starting or ending'),
    )
    expect(await finish(request, slow)).toBe(200)
    expect((await older.ended).code).toBe(0)
    const newer = await here.serveWith({ built: true })
    await acknowledged(`${newer.address}/webhook`, ids('after'))
    await hasBatches(here, ids('before'), ['slow'], ids('after'))
  })

  it('one of them stopped: it keeps the profile, and takes what came meanwhile once it goes on', async () => {
    await using here = await place({ host: 'none' })
    const older = await here.serveWith({ built: true })
    const olderHook = `${older.address}/webhook`
    await acknowledged(olderHook, ids('before'))
    const late = githubDelivery({ id: 'late', body: '"late"' })
    const request = await begin(olderHook, late)
    await stopBetweenWrites(older, here)
    // Both lie in its sockets when it goes on.
    const unread = post(olderHook, githubDelivery({ id: 'unread', body: '"unread"' }))
    const late200 = finish(request, late)

    expect(await here.runWith({ built: true }, ...SERVE)).toMatchObject(
      refused(`process ${older.pid} at ${older.address}`),
    )
    older.kill('SIGCONT')
    expect([await late200, (await unread).status]).toEqual([200, 200])
    await acknowledged(olderHook, ids('after'))
    await hasBatches(here, ids('before'), ['late', 'unread'], ids('after'))
    expect((await older.stop()).code).toBe(0)
  })

  it('one of them stopped: relay reset leaves its profile alone', async () => {
    await using here = await place({ host: 'none' })
    const serving = await here.serveWith({ built: true })
    await acknowledged(`${serving.address}/webhook`, ids('before'))
    await stopBetweenWrites(serving, here)
    expect(await here.runWith({ built: true }, 'reset', '--yes', '--local')).toMatchObject({
      code: 1,
      out: '',
      err: expect.stringContaining('a process that is stopped, starting or ending'),
    })
    serving.kill('SIGCONT')
    await acknowledged(`${serving.address}/webhook`, ids('after'))
    await hasBatches(here, ids('before'), ids('after'))
  })

  it('forward one backlog in order, and repeat no more than what was under way or not yet on disk', async () => {
    await using target = await slowTarget()
    await using here = await place({ host: 'none' })
    const flags = ['--forward', target.url]
    const older = await here.serveWith({ built: true }, ...flags)
    const count = 80
    const numbers = Array.from({ length: count }, (_, i) => i)
    const webhook = `${older.address}/webhook`
    for (const n of numbers) await acknowledged(webhook, [String(n)])
    target.open()
    await target.has(5)
    await older.stop('SIGKILL')
    expect(target.got().length).toBeLessThan(count)

    const newer = await here.serveWith({ built: true }, ...flags)
    await newer.object({ type: 'attempt', n: count })
    expect(await waitingOf(here)).toEqual([])
    const got = target.got()
    const again = got.findIndex((n, i) => n <= (got[i - 1] ?? -1))
    const [first, second] = again < 0 ? [got, []] : [got.slice(0, again), got.slice(again)]
    const repeated = first.filter((n) => second.includes(n))
    expect(first.concat(second.filter((n) => !first.includes(n)))).toEqual(numbers)
    expect(second).toEqual(numbers.slice(count - second.length))
    expect(repeated.length).toBeLessThanOrEqual(MAX_REPEATED)
  })
})

/** How a second `serve` ends, which names the first. */
function refused(owner: string): object {
  const err: unknown = expect.stringContaining(`already served by ${owner}. Stop it, or choose`)
  return { code: 1, out: '', err }
}
