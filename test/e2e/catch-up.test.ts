import { describe, expect, it } from 'vitest'
import type { Entry } from '../../src/journal/delivery.js'
import { sign } from '../helpers/sign.js'
import { HOOK_SECRET, type HookHost, startHookHost } from '../helpers/hook-host.js'
import { journalOf, textOf } from '../helpers/serve.js'
import { startSmee } from '../helpers/smee-server.js'
import { startTarget, type TargetServer } from '../helpers/target.js'

const texts = (count: number): string[] => Array.from({ length: count }, (_, n) => `comment ${n}`)

/** The comments among what the target received, in order. */
const commentsOf = (target: TargetServer): Buffer[] =>
  target.received.map(({ body }) => body).filter((body) => JSON.parse(body.toString()).comment !== undefined)

const textsOf = (bodies: readonly (Buffer | string)[]): string[] =>
  bodies.map((body) => JSON.parse(body.toString()).comment.body)

/** Waits until the target has so many comments, whatever else it has. */
async function hasComments(target: TargetServer, count: number): Promise<void> {
  while (commentsOf(target).length < count) await target.has(target.received.length + 1)
}

async function commentEntries(home: string): Promise<Entry[]> {
  return (await journalOf(home)).filter(({ event }) => event === 'issue_comment')
}

/** The signature that came with an entry. */
function signatureOf({ headers }: Entry): string | undefined {
  return headers.find(([name]) => name.toLowerCase() === 'x-hub-signature-256')?.[1]
}

/** GitHub's two kinds of rate limit: for what is asked too fast, and for all of an hour. */
function limit(kind: 'secondary' | 'primary') {
  const body = JSON.stringify({ message: `You have exceeded a ${kind} rate limit.` })
  const resetAt = String(Math.ceil(Date.now() / 1000) + 1)
  const headers =
    kind === 'secondary'
      ? { 'Retry-After': '1' }
      : { 'X-RateLimit-Remaining': '0', 'X-RateLimit-Reset': resetAt }
  return { kind: 'answer', status: 403, headers, body } as const
}

/** How often pages of a delivery log were asked for. */
const pagesAsked = ({ sandbox }: HookHost): number =>
  sandbox.requests.filter(({ method, path }) => method === 'GET' && path.endsWith('/deliveries')).length

/** Pages of 100 entries: those of 300 comments, and of at least one ping. */
const PAGES = 4

describe('relay serve --hook --catch-up', () => {
  it.each([0, 40])(
    'gets 300 deliveries that were sent while it was killed, and had %i of them before',
    async (had) => {
      await using host = await startHookHost()
      await using target = await startTarget()
      const flags = ['--hook', 'octo/demo', '--catch-up', '--forward', target.url]
      {
        await using program = host.serve(...flags)
        await program.object({ type: 'hook', state: 'caught up' })
        await host.comment(0, had)
        // And of the ping: an attempt that the kill interrupts is made again.
        await program.objects({ type: 'attempt', outcome: 'succeeded' }, had + 1)
        await program.stop('SIGKILL')
      }
      await host.comment(had, 300)
      const asked = pagesAsked(host)
      const { faults } = host.sandbox
      faults.next('deliveries', limit('secondary'))
      faults.next('redeliver', limit('secondary'))
      faults.next('redeliver', '502')
      await using program = host.serve(...flags)
      expect(await program.object({ type: 'hook', state: 'ready' })).toMatchObject({
        created: false,
        repaired: [expect.stringContaining('it led to http://127.0.0.1:')],
      })
      expect(await program.object({ type: 'hook', state: 'missing' })).toMatchObject({ missing: 300 - had })
      // The first was refused by the rate limit.
      expect(pagesAsked(host) - asked).toBeGreaterThan(PAGES)
      await program.objects({ type: 'delivery', event: 'issue_comment' }, 150)
      faults.next('redeliver', limit('primary'))
      expect(await program.object({ type: 'hook', state: 'caught up' })).toMatchObject({
        missing: 300 - had,
        arrived: 300 - had,
        failed: [],
      })
      await hasComments(target, 300)
      expect((await host.hooks()).map(({ url }) => url)).toEqual([`${await program.url()}/webhook`])
      const { err } = await program.stop()
      for (const kind of ['primary', 'secondary'])
        expect(err).toContain(`You have exceeded a ${kind} rate limit`)
      expect(err).toContain('the hook of octo/demo stays')
      expect(await host.hooks()).toHaveLength(1)
      // Each once, in order, with the signed bytes; and the same at the target.
      const entries = await commentEntries(host.home)
      expect(textsOf(entries.map(textOf))).toEqual(texts(300))
      expect(entries.map(signatureOf)).toEqual(entries.map(({ body }) => sign(HOOK_SECRET, body)))
      expect(commentsOf(target).map((body) => sign(HOOK_SECRET, body))).toEqual(entries.map(signatureOf))
    },
    120_000,
  )

  it('never gets again what retention has removed', async () => {
    await using host = await startHookHost()
    await using target = await startTarget()
    const flags = ['--hook', 'octo/demo', '--catch-up', '--forward', target.url]
    const isCaughtUp = { type: 'hook', state: 'caught up' }
    {
      await using program = host.serve(...flags)
      await program.object(isCaughtUp)
      await host.comment(0, 3)
      await program.objects({ type: 'attempt', outcome: 'succeeded' }, 4)
      await program.stop('SIGKILL')
    }
    {
      // Smaller than an empty journal: all but the newest goes at the start.
      await using program = host.serve(...flags, '--keep-max', '1KiB')
      await program.object(isCaughtUp)
      const logged = async (): Promise<string> => (await host.relay('log', '--json')).out
      await expect.poll(logged).toMatch(/^[^\n]*\n$/)
      await program.stop('SIGKILL')
    }
    await host.comment(3, 5)
    await using program = host.serve(...flags)
    expect(await program.object(isCaughtUp)).toMatchObject({ missing: 2, arrived: 2, failed: [] })
    await hasComments(target, 5)
    await program.stop()
    expect(textsOf(commentsOf(target))).toEqual(texts(5))
    expect(textsOf((await commentEntries(host.home)).map(textOf))).toEqual(texts(5).slice(2))
  })
})

describe('relay serve --tunnel --hook --catch-up', () => {
  it('gets what the tunnel took while relay was away, and tests the hook', async () => {
    await using host = await startHookHost()
    await using smee = await startSmee()
    await using target = await startTarget()
    const flags = ['--tunnel', smee.channel, '--hook', 'octo/demo', '--catch-up', '--forward', target.url]
    {
      await using program = host.serve(...flags)
      expect(await program.object({ type: 'hook', state: 'ready' })).toMatchObject({ url: smee.channel })
      await program.object({ type: 'hook', state: 'caught up' })
      const tested = await host.relay('hook', 'test', 'octo/demo')
      expect(tested).toMatchObject({
        code: 0,
        out: expect.stringMatching(/^ping of octo\/demo arrived: #\d+\n$/),
      })
      await program.stop('SIGKILL')
    }
    await host.comment(0, 3)
    await using program = host.serve(...flags)
    expect(await program.object({ type: 'hook', state: 'caught up' })).toMatchObject({
      missing: 3,
      arrived: 3,
    })
    await hasComments(target, 3)
    expect(textsOf(commentsOf(target))).toEqual(texts(3))
    expect(await host.relay('hook', 'remove', 'octo/demo')).toMatchObject({ code: 0 })
    expect(await host.relay('hook', 'add', 'octo/demo')).toMatchObject({
      code: 0,
      out: `hook of octo/demo created: ${smee.channel}\n`,
    })
  })
})
