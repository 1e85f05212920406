import { describe, expect, it } from 'vitest'
import { fixtureOf, loadFixture, signedRequest, startRelay } from 'webhook-relay/testing'
import { receiver, valuesOf } from '../kit/receiver.js'

const opened = await loadFixture('fixtures/github/issues.opened.json')
const push = await loadFixture('fixtures/github/push.json')

describe('deliver', () => {
  it('returns the accepted delivery and the response of each target', async () => {
    await using app = await receiver({ status: 202, body: 'thanks' })
    await using other = await receiver()
    await using relay = await startRelay({ forward: [app.url, `push=${other.url}`] })
    const delivery = await relay.deliver(opened)
    expect(delivery).toMatchObject({ n: 1, event: 'issues', action: 'opened', duplicates: 0 })
    expect(delivery.payload).toEqual(JSON.parse(opened.body ?? ''))
    const answered = { outcome: 'succeeded', status: 202, answer: 'thanks', error: null }
    expect(delivery.attempts).toEqual([{ target: app.url, ...answered }])
    expect(app.received.map(({ body }) => body.toString())).toEqual([opened.body])
    expect(other.received).toEqual([])
  })

  it.each([500, 404])('does not wait for retries after a response of %i', async (status) => {
    await using app = await receiver(status)
    await using relay = await startRelay({ forward: [app.url] })
    const { attempts } = await relay.deliver(opened)
    expect(attempts.map((attempt) => attempt.status)).toEqual([status])
  })

  it('reports a target where nothing listens', async () => {
    const app = await receiver()
    await app.down()
    await using relay = await startRelay({ forward: [app.url] })
    const { attempts } = await relay.deliver(opened)
    expect(attempts).toMatchObject([{ outcome: 'unreachable', status: null, error: 'connection refused' }])
  })

  it('waits again for a repeated delivery', async () => {
    await using app = await receiver()
    app.answers(404, 200)
    await using relay = await startRelay({ forward: [app.url] })
    await relay.deliver(opened, { keepId: true })
    const { duplicates, attempts } = await relay.deliver(opened, { keepId: true })
    expect([duplicates, attempts.map(({ status }) => status)]).toEqual([1, [404, 200]])
  })

  it('is linear in the number of deliveries at once', async () => {
    await using app = await receiver()
    await using relay = await startRelay({ forward: [app.url] })
    const numbers = Array.from({ length: 200 }, (_, index) => index + 1)
    const sent = numbers.map((number) => relay.deliver(opened, { set: { 'issue.number': number } }))
    const delivered = await Promise.all(sent)
    expect(delivered.map(({ number, attempts }) => [number, attempts.map(({ status }) => status)])).toEqual(
      numbers.map((number) => [number, [200]]),
    )
    await relay.nothingMore()
  })

  it('reports the response of the relay to a refused delivery', async () => {
    await using relay = await startRelay({ settings: { maxBody: 10 } })
    const message = 'The relay refused the delivery: 413 {"error":"Request too large"}'
    await expect(relay.deliver(opened)).rejects.toMatchObject({ kind: 'target_failed', message })
  })
})

describe('deliveries', () => {
  it('are awaited and filtered', async () => {
    await using relay = await startRelay()
    const issues = relay.deliveries({ event: ['issues.*', 'ping'], repo: 'OCTO/demo' }, { count: 2 })
    await relay.deliver(opened)
    await relay.deliver(push)
    for (const number of [1, 2])
      await relay.deliver(opened, { set: { 'repository.full_name': 'octo/demo', 'issue.number': number } })
    expect((await issues).map(({ n, number }) => [n, number])).toEqual([
      [3, 1],
      [4, 2],
    ])
    expect(await relay.deliveries({}, { count: 4 })).toHaveLength(4)
    expect(await relay.deliveries({ event: 'fork' }, { count: 0 })).toEqual([])
  })

  it('include those that arrive over HTTP', async () => {
    await using relay = await startRelay()
    const url = `${relay.url}/webhook`
    expect((await fetch(signedRequest(push, { url }))).status).toBe(200)
    expect((await fetch(signedRequest(push, { url, tamper: 'body' }))).status).toBe(401)
    expect(await relay.deliveries()).toMatchObject([{ n: 1, event: 'push' }])
  })

  it('that do not arrive in time are an error that lists what did', async () => {
    await using app = await receiver('hang')
    await using relay = await startRelay({ forward: [`issues.opened=${app.url}`] })
    const late = (message: string) => ({ kind: 'timed_out', message })
    const wait = { timeout: 20 }
    const none = late('Waited 0.02s for 1 forwarded, got 0. Received: none')
    await expect(relay.deliveries({}, wait)).rejects.toMatchObject(none)
    await relay.deliver(push)
    await expect(relay.deliver(opened, wait)).rejects.toMatchObject({ kind: 'timed_out' })
    const repo = 'Codertocat/Hello-World'
    const both = relay.deliveries({ event: 'issues', repo }, { ...wait, count: 2 })
    const received = `#1 push ${repo}; #2 issues.opened ${repo}#1, not yet answered by issues.opened=${app.url}`
    const one = late(`Waited 0.02s for 2 forwarded (issues, ${repo}), got 1. Received: ${received}`)
    await expect(both).rejects.toMatchObject(one)
  })

  it('are no longer awaited after the signal aborts', async () => {
    await using relay = await startRelay()
    const abort = new AbortController()
    const waiting = relay.deliveries({}, { signal: abort.signal })
    abort.abort(new Error('enough'))
    await expect(waiting).rejects.toThrow('enough')
    await expect(relay.deliver(push, { signal: abort.signal })).rejects.toThrow('enough')
  })

  it('are no longer awaited after the relay stops', async () => {
    const relay = await startRelay()
    const waiting = [relay.deliveries(), relay.deliveries({ event: 'push' }, { count: 2 })]
    const ended = Promise.allSettled(waiting)
    await relay[Symbol.asyncDispose]()
    const reason = expect.objectContaining({ kind: 'cancelled' })
    expect(await ended).toEqual(waiting.map(() => ({ status: 'rejected', reason })))
  })

  it('of an invalid event are refused', async () => {
    await using relay = await startRelay()
    await expect(relay.deliveries({ event: 'a b*' })).rejects.toMatchObject({ kind: 'usage' })
  })
})

describe('startRelay', () => {
  it('signs users in and shows their actions at the sandbox', async () => {
    await using relay = await startRelay()
    const token = await relay.signIn('ada')
    const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' }
    const body = JSON.stringify({ owner: 'octo', repo: 'demo', issueNumber: 1, body: 'hello' })
    expect((await fetch(`${relay.url}/api/comment`, { method: 'POST', headers, body })).status).toBe(200)
    const { comments } = relay.sandbox
    expect(comments).toMatchObject([{ repo: 'octo/demo', issueNumber: 1, user: 'octo', body: 'hello' }])
    const [comment] = await relay.deliveries({ event: 'issue_comment.created' })
    expect(comment?.payload).toMatchObject({ comment: { body: 'hello' } })
  })

  it('reports why a sign-in fails', async () => {
    await using relay = await startRelay()
    const invalid = { kind: 'usage', message: 'Cannot sign in: {"error":"Invalid userId"}' }
    await expect(relay.signIn('a b')).rejects.toMatchObject(invalid)
    relay.sandbox.faults.next('token', '502')
    const failed = { kind: 'unauthenticated', message: 'Cannot sign in: provider_unavailable' }
    await expect(relay.signIn()).rejects.toMatchObject(failed)
  })

  it('replaces its routes while it runs', async () => {
    await using app = await receiver()
    await using relay = await startRelay({ ignore: ['*'] })
    relay.replaceRoutes({ forward: [app.url] })
    await relay.deliver(push)
    expect(app.received.map((handed) => valuesOf(handed, 'x-github-event'))).toEqual([['push']])
    expect(() => relay.replaceRoutes({ forward: ['nowhere'] })).toThrow("'nowhere' names no http://")
  })

  it("calls the caller's callbacks too", async () => {
    const events: string[] = []
    await using app = await receiver()
    await using relay = await startRelay({
      forward: [app.url],
      onDelivery: ({ event }) => void events.push(event),
      onAttempt: ({ attempt }) => void events.push(attempt.outcome),
    })
    await relay.deliver(push)
    expect(events).toEqual(['push', 'succeeded'])
  })

  it('runs at the same time as another', async () => {
    await using one = await startRelay({ secret: 'one' })
    await using other = await startRelay()
    await one.deliver(push)
    expect([one.secret, other.secret]).toEqual(['one', "It's a Secret to Everybody"])
    expect(await other.deliveries({}, { count: 0 })).toEqual([])
  })
})

describe('fixtureOf', () => {
  it('creates a delivery about the contents of the sandbox', async () => {
    await using relay = await startRelay()
    const opened = await relay.deliver(fixtureOf('pull_request.opened'))
    const { repo, number } = opened
    expect([repo, number]).toEqual(['octo/demo', 2])
    const head = relay.sandbox.issue('octo/demo', 2)?.pull?.head.sha
    expect(opened.payload).toMatchObject({ pull_request: { head: { sha: head } } })
  })

  it('names what lists its events', () => {
    expect(() => fixtureOf('nonsense')).toThrow('no template for "nonsense": events() has them')
  })
})
