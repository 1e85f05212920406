import path from 'node:path'
import { setImmediate, setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { begin, finish, githubDelivery, post } from '../kit/delivery.js'
import { hold } from '../kit/disk.js'
import { entriesOf, waitingOf } from '../kit/journal.js'
import { type Place, place, type Serving } from '../kit/place.js'
import { receiver, valuesOf } from '../kit/receiver.js'

/** Stops a process by SIGSTOP, but not within a write, where it would hold the database until it continues. */
async function stopBetweenWrites(program: Serving, { home }: Place): Promise<void> {
  for (;;) {
    program.kill('SIGSTOP')
    try {
      hold(path.join(home, 'default')).release()
      return
    } catch {
      program.kill('SIGCONT')
      await setImmediate()
    }
  }
}

/** Fails when one of them is not answered 200. */
async function acknowledged(webhook: string, ids: readonly string[]): Promise<void> {
  const answers = await Promise.all(ids.map((id) => post(webhook, githubDelivery({ id, body: `"${id}"` }))))
  expect(answers.map(({ status }) => status)).toEqual(ids.map(() => 200))
}

/** Each entry's id, after it was seen that the body is its own and the numbers count up from 1. */
async function kept(here: Place): Promise<string[]> {
  const entries = await entriesOf(here)
  expect(entries.map(({ n }) => n)).toEqual(entries.map((_, i) => i + 1))
  expect(entries.map(({ body }) => body.toString())).toEqual(
    entries.map(({ deliveryId }) => `"${deliveryId}"`),
  )
  return entries.map(({ deliveryId }) => deliveryId)
}

/** The ids batch by batch, each in order: deliveries of a batch are sent at once and arrive in any order. */
function inBatches(kept: readonly string[], ...batches: readonly (readonly string[])[]): string[] {
  let rest = kept
  return batches
    .flatMap((batch) => {
      const part = rest.slice(0, batch.length)
      rest = rest.slice(batch.length)
      return part.toSorted((a, b) => batch.indexOf(a) - batch.indexOf(b))
    })
    .concat(rest)
}

const ids = (who: string): string[] => Array.from({ length: 20 }, (_, i) => `${who}-${i}`)

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

describe.concurrent('two processes over one journal', { timeout: 60_000 }, () => {
  it('keep, when one finishes after its successor has begun, what each acknowledged', async () => {
    await using here = await place({ host: 'none' })
    const older = await here.serveWith({ built: true })
    const olderHook = `${older.address}/webhook`
    await acknowledged(olderHook, ids('before'))
    const slow = githubDelivery({ id: 'slow', body: '"slow"' })
    const request = await begin(olderHook, slow)
    older.kill('SIGTERM')
    await older.says('Finishing in-flight work')

    const newer = await here.serveWith({ built: true })
    await acknowledged(`${newer.address}/webhook`, ids('after'))
    // The successor would not know of it: the sender has to send it again.
    expect(await finish(request, slow)).toBe(503)
    expect((await older.ended).code).toBe(0)
    await acknowledged(`${newer.address}/webhook`, ['slow', 'last'])
    expect(inBatches(await kept(here), ids('before'), ids('after'), ['slow', 'last'])).toEqual([
      ...ids('before'),
      ...ids('after'),
      'slow',
      'last',
    ])

    // The older one, when it ended, has not given away the profile of the newer one.
    const third = here.startWith({ built: true }, ...SERVE)
    expect((await third.ended).err).toContain(`already served by process ${newer.pid}`)
  })

  it('one of them stopped: it acknowledges nothing after the other took its place, and ends', async () => {
    await using here = await place({ host: 'none' })
    const older = await here.serveWith({ built: true })
    const olderHook = `${older.address}/webhook`
    await acknowledged(olderHook, ids('before'))
    const late = githubDelivery({ id: 'late', body: '"late"' })
    const request = await begin(olderHook, late)
    await stopBetweenWrites(older, here)
    // Both lie in its sockets when it goes on.
    const unread = post(olderHook, githubDelivery({ id: 'unread' }))
    const answers = Promise.allSettled([finish(request, late), unread.then(({ status }) => status)])

    const newer = await here.serveWith({ built: true })
    await acknowledged(`${newer.address}/webhook`, ids('newer'))
    older.kill('SIGCONT')
    for (const answer of await answers) expect([503, undefined]).toContain(valueOf(answer))
    const { code, err } = await older.ended
    expect(code).toBe(1)
    expect(err).toContain(
      `Process ${newer.pid} at ${newer.address} has taken over this profile because this relay did not answer in time. This relay stops.`,
    )
    await acknowledged(`${newer.address}/webhook`, ids('after'))
    expect(inBatches(await kept(here), ids('before'), ids('newer'), ids('after'))).toEqual([
      ...ids('before'),
      ...ids('newer'),
      ...ids('after'),
    ])
    const third = here.startWith({ built: true }, ...SERVE)
    expect((await third.ended).err).toContain(`already served by process ${newer.pid}`)
  })

  it('one of them stopped and with nothing to do: it notices by itself', async () => {
    await using here = await place({ host: 'none' })
    const older = await here.serveWith({ built: true })
    await stopBetweenWrites(older, here)
    await here.serveWith({ built: true })
    older.kill('SIGCONT')
    expect((await older.ended).code).toBe(1)
  })

  it('forward one backlog in order, and repeat no more than the attempt that was under way', async () => {
    await using target = await slowTarget()
    await using here = await place({ host: 'none' })
    const flags = ['--forward', target.url]
    const older = await here.serveWith({ built: true }, ...flags)
    const count = 250
    const numbers = Array.from({ length: count }, (_, i) => i)
    const webhook = `${older.address}/webhook`
    for (const n of numbers) await acknowledged(webhook, [String(n)])
    target.open()
    await target.has(5)
    await stopBetweenWrites(older, here)

    const newer = await here.serveWith({ built: true }, ...flags)
    const before = target.got().length
    await target.has(before + 5)
    older.kill('SIGCONT')
    expect((await older.ended).code).toBe(1)
    expect(target.got().length).toBeLessThan(count)
    await newer.object({ type: 'attempt', n: count })
    expect(await waitingOf(here)).toEqual([])
    const got = target.got()
    expect(got.filter((n, i) => n !== got[i - 1])).toEqual(numbers)
    expect(got.length).toBeLessThanOrEqual(count + 1)
  })
})

function valueOf(answer: PromiseSettledResult<number>): number | undefined {
  return answer.status === 'fulfilled' ? answer.value : undefined
}
