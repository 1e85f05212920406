import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type ActionService, DEMO, HELLO, startActionService } from '../helpers/action-service.js'

let service: ActionService

beforeAll(async () => {
  service = await startActionService()
})
afterAll(() => service[Symbol.asyncDispose]())

describe('an error of the provider', () => {
  const none = 'The sandbox refused: Not Found (no such repository or number, or no access to it)'
  const doubt = '; the request may have been carried out all the same'
  it.each<[string, object, number, string]>([
    [
      'comment',
      { ...HELLO, issueNumber: 4 },
      403,
      'The sandbox refused: Unable to create comment because issue is locked.',
    ],
    ['comment', { ...HELLO, issueNumber: 99 }, 404, none],
    ['comment', { ...HELLO, repo: 'none' }, 404, none],
    ['merge', { ...DEMO, pullNumber: 1 }, 404, none],
    [
      'merge',
      { ...DEMO, pullNumber: 3 },
      409,
      'Not merged: it conflicts with its base branch (The sandbox: Pull Request is not mergeable)',
    ],
    [
      'merge',
      { ...DEMO, pullNumber: 5, sha: '0'.repeat(40) },
      409,
      'The sandbox refused: Head branch was modified. Review and try the merge again.',
    ],
    [
      'comment',
      { ...HELLO, repo: 'no-issues' },
      410,
      'The sandbox refused: Issues are disabled for this repo',
    ],
    [
      'comment',
      { ...HELLO, body: 'x'.repeat(65_537) },
      422,
      'The sandbox refused: Validation Failed (IssueComment.data: Body is too long (maximum is 65536 characters))',
    ],
    ['comment', { ...HELLO, repo: 'fault-502' }, 502, `The sandbox failed (502)${doubt}`],
    [
      'comment',
      { ...HELLO, repo: 'fault-invalid-json' },
      502,
      `The sandbox gave an answer that was not understood${doubt}`,
    ],
    [
      'comment',
      { ...HELLO, repo: 'fault-reset' },
      502,
      `The sandbox gave no complete answer (connection closed before an answer)${doubt}`,
    ],
    ['comment', { ...HELLO, repo: 'fault-slow' }, 504, `The sandbox did not answer within 0.5 s${doubt}`],
  ])('%s %j', async (path, body, status, error) => {
    const before = service.requests('POST') + service.requests('PUT')
    expect(await service.ask(path, body)).toEqual([status, { error }])
    expect(service.requests('POST') + service.requests('PUT')).toBe(before + 1)
  })

  it.each([
    ['rate-limit', 'API rate limit exceeded for user ID 1.'],
    [
      'secondary-limit',
      'You have exceeded a secondary rate limit. Please wait a few minutes before you try again.',
    ],
  ])('429 with Retry-After: %s', async (fault, said) => {
    const answer = await service.post('react', {
      ...DEMO,
      repo: `fault-${fault}`,
      issueNumber: 1,
      content: 'eyes',
    })
    expect([answer.status, answer.body]).toEqual([429, { error: `The sandbox refused: ${said}` }])
    const wait = Number(answer.headers.get('retry-after'))
    expect(wait).toBeGreaterThanOrEqual(59)
    expect(wait).toBeLessThanOrEqual(61)
  })
})

describe('a write is made once', () => {
  const doubt =
    'The sandbox gave no complete answer (connection closed before an answer); the request may have been carried out all the same'

  it('although the connection broke after a comment was posted', async () => {
    const commentsOf = () => service.sandbox.comments.filter(({ repo }) => repo === 'octo/fault-reset-after')
    expect(await service.ask('comment', { ...HELLO, repo: 'fault-reset-after' })).toEqual([
      502,
      { error: doubt },
    ])
    expect(commentsOf().map(({ body }) => body)).toEqual(['hello'])
  })

  it('although the connection broke after a merge', async () => {
    const before = service.requests('PUT')
    expect(await service.ask('merge', { ...DEMO, repo: 'fault-reset-after', pullNumber: 2 })).toEqual([
      502,
      { error: doubt },
    ])
    expect(service.requests('PUT')).toBe(before + 1)
    expect(service.sandbox.merges.filter(({ repo }) => repo === 'octo/fault-reset-after')).toHaveLength(1)
  })

  it('although the client disconnected', async () => {
    service.sandbox.faults.next('comment', { kind: 'slow', ms: 400 })
    const before = service.requests('POST')
    const client = new AbortController()
    const answer = service.send('comment', { ...HELLO, body: 'from a client that left' }, {}, client.signal)
    await expect.poll(() => service.requests('POST')).toBe(before + 1)
    client.abort()
    await expect(answer).rejects.toThrow('aborted')
    await expect.poll(() => service.sandbox.comments.at(-1)?.body).toBe('from a client that left')
  })
})
