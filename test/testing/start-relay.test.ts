import { describe, expect, it } from 'vitest'
import { fixtureBody } from '../../src/journal/fixture.js'
import {
  loadFixture,
  loadFixtures,
  signedRequest,
  startRelay,
  type TestRelay,
} from '../../src/testing/index.js'
import { startTarget, valuesOf } from '../helpers/target.js'

const opened = await loadFixture('fixtures/github/issues.opened.json')
const push = await loadFixture('fixtures/github/push.json')
const DEMO = { owner: 'octo', repo: 'demo' }

function act({ url }: TestRelay, token: string, path: string, body: object): Promise<Response> {
  return fetch(`${url}/api/${path}`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
    body: JSON.stringify({ ...DEMO, ...body }),
  })
}

describe('deliver', () => {
  it('tells what was taken in, and what each target answered', async () => {
    await using app = await startTarget(() => ({ status: 202, body: 'thanks' }))
    await using other = await startTarget()
    await using relay = await startRelay({ forward: [app.url, `push=${other.url}`] })
    const delivery = await relay.deliver(opened)
    expect(delivery).toMatchObject({ n: 1, event: 'issues', action: 'opened', duplicates: 0 })
    expect(delivery.payload).toEqual(JSON.parse(opened.body ?? ''))
    const answered = { outcome: 'succeeded', status: 202, answer: 'thanks', error: null }
    expect(delivery.attempts).toEqual([{ target: app.url, ...answered }])
    expect(app.received.map(({ body }) => body.toString())).toEqual([opened.body])
    expect(other.received).toEqual([])
  })

  it('takes every fixture that comes with relay for GitHub', async () => {
    await using relay = await startRelay({ secret: 'another' })
    for (const { fixture } of await loadFixtures('fixtures/github')) {
      const { body } = await relay.deliver(fixture)
      expect(Buffer.from(body).equals(Buffer.from(fixtureBody(fixture)))).toBe(true)
    }
  })

  it.each([500, 404])('does not wait for what follows an answer of %i', async (status) => {
    await using app = await startTarget(() => status)
    await using relay = await startRelay({ forward: [app.url] })
    const { attempts } = await relay.deliver(opened)
    expect(attempts.map((attempt) => attempt.status)).toEqual([status])
  })

  it('tells of a target that nobody listens at', async () => {
    const app = await startTarget()
    await app.down()
    await using relay = await startRelay({ forward: [app.url] })
    const { attempts } = await relay.deliver(opened)
    expect(attempts).toMatchObject([{ outcome: 'unreachable', status: null, error: 'connection refused' }])
  })

  it('waits anew for a delivery that comes again', async () => {
    await using app = await startTarget()
    app.answers(404, 200)
    await using relay = await startRelay({ forward: [app.url] })
    await relay.deliver(opened, { keepId: true })
    const { duplicates, attempts } = await relay.deliver(opened, { keepId: true })
    expect([duplicates, attempts.map(({ status }) => status)]).toEqual([1, [404, 200]])
  })

  it('says what the relay said to one it does not take', async () => {
    await using relay = await startRelay({ settings: { maxBody: 10 } })
    await expect(relay.deliver(opened)).rejects.toMatchObject({
      kind: 'target_failed',
      message: 'The relay did not take the delivery: 413 {"error":"Request too large"}',
    })
  })
})

describe('deliveries', () => {
  it('are waited for, and chosen', async () => {
    await using relay = await startRelay()
    const issues = relay.deliveries({ event: ['issues.*', 'ping'], repo: 'OCTO/demo' }, { count: 2 })
    await relay.deliver(opened)
    await relay.deliver(push)
    for (const number of [1, 2]) {
      await relay.deliver(opened, { set: { 'repository.full_name': 'octo/demo', 'issue.number': number } })
    }
    expect((await issues).map(({ n, number }) => [n, number])).toEqual([
      [3, 1],
      [4, 2],
    ])
    expect(await relay.deliveries({}, { count: 4 })).toHaveLength(4)
    expect(await relay.deliveries({ event: 'fork' }, { count: 0 })).toEqual([])
  })

  it('come in by HTTP as well', async () => {
    await using relay = await startRelay()
    const url = `${relay.url}/webhook`
    const statuses = [signedRequest(push, { url }), signedRequest(push, { url, tamper: 'body' })].map(
      async (request) => (await fetch(request)).status,
    )
    expect(await Promise.all(statuses)).toEqual([200, 401])
    expect(await relay.deliveries()).toMatchObject([{ n: 1, event: 'push' }])
  })

  it('that do not come in time are an error that names what is there', async () => {
    await using app = await startTarget(() => 'hang')
    await using relay = await startRelay({ forward: [`issues.opened=${app.url}`] })
    const late = (message: string) => ({ kind: 'timed_out', message })
    const wait = { timeout: 20 }
    await expect(relay.deliveries({}, wait)).rejects.toMatchObject(
      late('Waited 0.02s for 1 handed on, got 0. There is none at all'),
    )
    await relay.deliver(push)
    await expect(relay.deliver(opened, wait)).rejects.toMatchObject({ kind: 'timed_out' })
    await expect(
      relay.deliveries({ event: 'issues', repo: 'Codertocat/Hello-World' }, { ...wait, count: 2 }),
    ).rejects.toMatchObject(
      late(
        'Waited 0.02s for 2 handed on (issues, Codertocat/Hello-World), got 1. There: #1 push Codertocat/Hello-World; ' +
          `#2 issues.opened Codertocat/Hello-World#1, not yet answered by issues.opened=${app.url}`,
      ),
    )
  })

  it('are not waited for any more when the signal aborts', async () => {
    await using relay = await startRelay()
    const abort = new AbortController()
    const waiting = relay.deliveries({}, { signal: abort.signal })
    abort.abort(new Error('enough'))
    await expect(waiting).rejects.toThrow('enough')
    await expect(relay.deliver(push, { signal: abort.signal })).rejects.toThrow('enough')
  })

  it('are not waited for any more when the relay is stopped', async () => {
    const relay = await startRelay()
    const waiting = [relay.deliveries(), relay.deliveries({ event: 'push' }, { count: 2 })]
    const ended = Promise.allSettled(waiting)
    await relay[Symbol.asyncDispose]()
    const reason = expect.objectContaining({ kind: 'cancelled' })
    expect(await ended).toEqual(waiting.map(() => ({ status: 'rejected', reason })))
  })

  it('of no such event are refused', async () => {
    await using relay = await startRelay()
    await expect(relay.deliveries({ event: 'a b*' })).rejects.toMatchObject({ kind: 'usage' })
  })
})

describe('startRelay', () => {
  it('signs users in, and shows what they did at the sandbox', async () => {
    await using relay = await startRelay()
    const token = await relay.signIn('ada')
    const statuses = [
      await act(relay, token, 'comment', { issueNumber: 1, body: 'hello' }),
      await act(relay, token, 'react', { issueNumber: 1, content: 'rocket' }),
      await act(relay, token, 'merge', { pullNumber: 2 }),
    ].map(({ status }) => status)
    expect(statuses).toEqual([200, 200, 200])
    const { comments, reactions, merges } = relay.sandbox
    expect(comments).toMatchObject([{ repo: 'octo/demo', issueNumber: 1, user: 'octo', body: 'hello' }])
    expect(reactions).toMatchObject([{ subject: { kind: 'issue' }, content: 'rocket' }])
    expect(merges).toMatchObject([{ repo: 'octo/demo', pullNumber: 2, method: 'merge' }])
    const [comment] = await relay.deliveries({ event: 'issue_comment.created' })
    expect(comment?.payload).toMatchObject({ comment: { body: 'hello' } })
  })

  it('says why a user cannot sign in', async () => {
    await using relay = await startRelay()
    await expect(relay.signIn('a b')).rejects.toMatchObject({
      kind: 'usage',
      message: 'Cannot sign in: {"error":"Invalid userId"}',
    })
    relay.sandbox.faults.next('token', '502')
    await expect(relay.signIn()).rejects.toMatchObject({
      kind: 'unauthenticated',
      message: 'Cannot sign in: provider_unavailable',
    })
  })

  it('takes other routes while it runs', async () => {
    await using app = await startTarget()
    await using relay = await startRelay({ ignore: ['*'] })
    relay.replaceRoutes({ forward: [app.url] })
    await relay.deliver(push)
    expect(app.received.map((handed) => valuesOf(handed, 'x-github-event'))).toEqual([['push']])
    expect(() => relay.replaceRoutes({ forward: ['nowhere'] })).toThrow("'nowhere' names no http://")
  })

  it('tells those who watch, too', async () => {
    const told: string[] = []
    await using app = await startTarget()
    await using relay = await startRelay({
      forward: [app.url],
      onDelivery: ({ event }) => void told.push(event),
      onAttempt: ({ attempt }) => void told.push(attempt.outcome),
    })
    await relay.deliver(push)
    expect(told).toEqual(['push', 'succeeded'])
  })

  it('runs beside another one', async () => {
    await using one = await startRelay({ secret: 'one' })
    await using other = await startRelay()
    await one.deliver(push)
    expect([one.secret, other.secret]).toEqual(['one', "It's a Secret to Everybody"])
    expect(await other.deliveries({}, { count: 0 })).toEqual([])
  })
})
