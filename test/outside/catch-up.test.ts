import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { limited, repository, type Repository } from '../kit/code-host.js'
import { SECRET, sign } from '../kit/delivery.js'
import { type Entry, entriesOf } from '../kit/journal.js'
import { type Place, place } from '../kit/place.js'
import { type Receiver, receiver, valuesOf } from '../kit/receiver.js'
import { smee } from '../kit/smee.js'

let here: Place
let demo: Repository
let target: Receiver
let flags: readonly string[]
beforeEach(async () => {
  here = await place({ signedIn: true })
  demo = await repository(here.sandbox)
  target = await receiver()
  flags = ['--hook', 'octo/demo', '--catch-up', '--forward', target.url]
})
afterEach(async () => {
  await here[Symbol.asyncDispose]()
  await target[Symbol.asyncDispose]()
})

const texts = (count: number): string[] => Array.from({ length: count }, (_, n) => `comment ${n}`)

/** The comments among what the target received, in order. */
const commentsOf = ({ received }: Receiver): Buffer[] =>
  received.map(({ body }) => body).filter((body) => JSON.parse(body.toString()).comment !== undefined)

const textsOf = (bodies: readonly Buffer[]): string[] =>
  bodies.map((body) => JSON.parse(body.toString()).comment.body)

/** Waits until the target has so many comments, whatever else it has. */
async function hasComments(count: number): Promise<void> {
  while (commentsOf(target).length < count) await target.has(target.received.length + 1)
}

async function commentEntries(): Promise<Entry[]> {
  return (await entriesOf(here)).filter(({ event }) => event === 'issue_comment')
}

/** GitHub's limit for all of an hour, which ends in a second. */
const primary = () => {
  const body = JSON.stringify({ message: 'You have exceeded a primary rate limit.' })
  const resetAt = String(Math.ceil(Date.now() / 1000) + 1)
  const headers = { 'X-RateLimit-Remaining': '0', 'X-RateLimit-Reset': resetAt }
  return { kind: 'answer', status: 403, headers, body } as const
}

/** How often pages of a delivery log were asked for. */
const pagesAsked = (): number =>
  here.sandbox.requests.filter(({ method, path }) => method === 'GET' && path.endsWith('/deliveries')).length

const IS_CAUGHT_UP = { type: 'hook', state: 'caught up' }

describe('relay serve --hook --catch-up', () => {
  const HAD = 5
  const SENT = 40
  /** Pages of 100 entries: the pings after them, which are not caught up with, are a page of their own. */
  const PINGS = 100
  const PAGES = 2

  it('gets what was sent while it was away, page by page, with limits and failures in the way', async () => {
    {
      const before = await here.serve(...flags)
      await before.object(IS_CAUGHT_UP)
      await demo.comment(...texts(HAD))
      await before.objects({ type: 'attempt', outcome: 'succeeded' }, HAD + 1)
      await before.stop()
    }
    await demo.comment(...texts(SENT).slice(HAD))
    await demo.ping(PINGS)
    const asked = pagesAsked()
    const { faults } = here.sandbox
    faults.next('deliveries', limited(1))
    faults.next('redeliver', limited(1))
    faults.next('redeliver', '502')
    const serving = await here.serve(...flags)
    expect(await serving.object({ type: 'hook', state: 'ready' })).toMatchObject({
      created: false,
      repaired: [expect.stringContaining('it led to http://127.0.0.1:')],
    })
    expect(await serving.object({ type: 'hook', state: 'missing' })).toMatchObject({ missing: SENT - HAD })
    // The first was refused by the rate limit.
    expect(pagesAsked() - asked).toBeGreaterThan(PAGES)
    await serving.objects({ type: 'delivery', event: 'issue_comment' }, 20)
    faults.next('redeliver', primary())
    expect(await serving.object(IS_CAUGHT_UP)).toMatchObject({
      missing: SENT - HAD,
      arrived: SENT - HAD,
      failed: [],
    })
    await hasComments(SENT)
    expect((await demo.hooks()).map(({ url }) => url)).toEqual([`${serving.address}/webhook`])
    const { err } = await serving.stop()
    for (const kind of ['primary', 'secondary'])
      expect(err).toContain(`You have exceeded a ${kind} rate limit`)
    expect(err).toContain('the hook of octo/demo stays')
    expect(await demo.hooks()).toHaveLength(1)
    // Each once, in order, with the signed bytes; and the same at the target.
    const entries = await commentEntries()
    const signatures = entries.flatMap((entry) => valuesOf(entry, 'X-Hub-Signature-256'))
    expect(textsOf(entries.map(({ body }) => body))).toEqual(texts(SENT))
    expect(signatures).toEqual(entries.map(({ body }) => sign(SECRET, body)))
    expect(commentsOf(target).map((body) => sign(SECRET, body))).toEqual(signatures)
  })
})

describe('relay serve --tunnel --hook --catch-up', () => {
  it('gets what the tunnel took while relay was away, and tests the hook', async () => {
    await using tunnel = await smee()
    const through = ['--tunnel', tunnel.channel, ...flags]
    {
      const serving = await here.serve(...through)
      expect(await serving.object({ type: 'hook', state: 'ready' })).toMatchObject({ url: tunnel.channel })
      await serving.object(IS_CAUGHT_UP)
      expect(await here.run('hook', 'test', 'octo/demo')).toMatchObject({
        code: 0,
        out: expect.stringMatching(/^ping of octo\/demo arrived: #\d+\n$/),
      })
      await serving.stop()
    }
    await demo.comment(...texts(3))
    const serving = await here.serve(...through)
    expect(await serving.object(IS_CAUGHT_UP)).toMatchObject({ missing: 3, arrived: 3 })
    await hasComments(3)
    expect(textsOf(commentsOf(target))).toEqual(texts(3))
    expect(await here.run('hook', 'remove', 'octo/demo')).toMatchObject({ code: 0 })
    expect(await here.run('hook', 'add', 'octo/demo')).toMatchObject({
      code: 0,
      out: `hook of octo/demo created: ${tunnel.channel}\n`,
    })
    // The relay that listens there ends first.
    await serving.stop()
  })
})
