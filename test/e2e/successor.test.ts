import { EventEmitter, once } from 'node:events'
import { createServer } from 'node:http'
import path from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { emptyFolder } from '../helpers/context.js'
import { begin, finish, githubDelivery, post } from '../helpers/delivery.js'
import type { Program } from '../helpers/program.js'
import { portOf } from '../helpers/scripted-server.js'
import { journalOf, serve, textOf, unfinished } from '../helpers/serve.js'
import { holdLock } from '../store/hold.js'

/** Stops a process by SIGSTOP while it does not write: within a write it would hold the database for as long as it is stopped. */
async function stopBetweenWrites({ child }: Program, home: string): Promise<void> {
  for (;;) {
    child.kill('SIGSTOP')
    try {
      holdLock(path.join(home, 'default')).release()
      return
    } catch {
      child.kill('SIGCONT')
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
async function kept(home: string): Promise<string[]> {
  const entries = await journalOf(home)
  expect(entries.map(({ n }) => n)).toEqual(entries.map((_, i) => i + 1))
  expect(entries.map(textOf)).toEqual(entries.map(({ deliveryId }) => `"${deliveryId}"`))
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

/** A target that takes its time from when it is opened, and the number of each delivery that it got, in order. */
async function slowTarget() {
  const got: number[] = []
  const changes = new EventEmitter()
  let open = (): void => {}
  const opened = new Promise<void>((resolve) => (open = resolve))
  const server = createServer((incoming, outgoing) => {
    got.push(Number(incoming.headers['x-github-delivery']))
    changes.emit('change')
    incoming.resume()
    void opened.then(() => setTimeout(() => outgoing.end(), SLOW))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${portOf(server)}`,
    got,
    open,
    async has(count: number) {
      while (got.length < count) await once(changes, 'change')
    },
    async [Symbol.asyncDispose]() {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
}

describe.concurrent('two processes over one journal', () => {
  it('keep, when one finishes after its successor has begun, what each acknowledged', async () => {
    const home = emptyFolder()
    await using older = serve(home)
    const olderHook = `${await older.url()}/webhook`
    await acknowledged(olderHook, ids('before'))
    const slow = githubDelivery({ id: 'slow', body: '"slow"' })
    const request = await begin(olderHook, slow)
    older.child.kill('SIGTERM')
    await older.says('Finishing in-flight work')

    await using newer = serve(home)
    await acknowledged(`${await newer.url()}/webhook`, ids('after'))
    // The successor would not know of it: the sender has to send it again.
    expect(await finish(request, slow)).toBe(503)
    expect((await older.ended).code).toBe(0)
    await acknowledged(`${await newer.url()}/webhook`, ['slow', 'last'])
    expect(inBatches(await kept(home), ids('before'), ids('after'), ['slow', 'last'])).toEqual([
      ...ids('before'),
      ...ids('after'),
      'slow',
      'last',
    ])

    // The older one, when it ended, has not given away the profile of the newer one.
    await using third = serve(home)
    expect((await third.ended).err).toContain(`already served by process ${newer.pid}`)
  })

  it('one of them stopped: it acknowledges nothing after the other took its place, and ends', async () => {
    const home = emptyFolder()
    await using older = serve(home)
    const olderHook = `${await older.url()}/webhook`
    await acknowledged(olderHook, ids('before'))
    const late = githubDelivery({ id: 'late', body: '"late"' })
    const request = await begin(olderHook, late)
    await stopBetweenWrites(older, home)
    // Both lie in its sockets when it goes on.
    const unread = post(olderHook, githubDelivery({ id: 'unread' }))
    const answers = Promise.allSettled([finish(request, late), unread.then(({ status }) => status)])

    await using newer = serve(home)
    const newerUrl = await newer.url()
    await acknowledged(`${newerUrl}/webhook`, ids('newer'))
    older.child.kill('SIGCONT')
    for (const answer of await answers) expect([503, undefined]).toContain(valueOf(answer))
    const { code, err } = await older.ended
    expect(code).toBe(1)
    expect(err).toContain(
      `Process ${newer.pid} at ${newerUrl} has taken over this profile because this relay did not answer in time. This relay stops.`,
    )
    await acknowledged(`${newerUrl}/webhook`, ids('after'))
    expect(inBatches(await kept(home), ids('before'), ids('newer'), ids('after'))).toEqual([
      ...ids('before'),
      ...ids('newer'),
      ...ids('after'),
    ])
    await using third = serve(home)
    expect((await third.ended).err).toContain(`already served by process ${newer.pid}`)
  })

  it('one of them stopped and with nothing to do: it notices by itself', async () => {
    const home = emptyFolder()
    await using older = serve(home)
    await older.url()
    await stopBetweenWrites(older, home)
    await using newer = serve(home)
    await newer.url()
    older.child.kill('SIGCONT')
    expect((await older.ended).code).toBe(1)
  })

  it('forward one backlog in order, and repeat no more than the attempt that was under way', async () => {
    const home = emptyFolder()
    await using target = await slowTarget()
    const flags = ['--forward', target.url]
    await using older = serve(home, undefined, flags)
    const count = 400
    const numbers = Array.from({ length: count }, (_, i) => i)
    const webhook = `${await older.url()}/webhook`
    for (const n of numbers) await acknowledged(webhook, [String(n)])
    target.open()
    await target.has(5)
    await stopBetweenWrites(older, home)

    await using newer = serve(home, undefined, flags)
    await newer.url()
    const before = target.got.length
    await target.has(before + 5)
    older.child.kill('SIGCONT')
    expect((await older.ended).code).toBe(1)
    expect(target.got.length).toBeLessThan(count)
    await newer.object({ type: 'attempt', n: count })
    expect(await unfinished(home)).toEqual([])
    expect(target.got.filter((n, i) => n !== target.got[i - 1])).toEqual(numbers)
    expect(target.got.length).toBeLessThanOrEqual(count + 1)
  })
})

function valueOf(answer: PromiseSettledResult<number>): number | undefined {
  return answer.status === 'fulfilled' ? answer.value : undefined
}
