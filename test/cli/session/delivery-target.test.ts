import { describe, expect, it } from 'vitest'
import { targetOfDelivery } from '../../../src/old/session/delivery-target.js'
import { failure } from '../../helpers/failure.js'

const WEB = 'https://github.com/octo/demo'
const repository = { id: 7, full_name: 'octo/demo', html_url: WEB }
const pull = (number: number, id = 7) => ({
  number,
  url: `https://x/pulls/${number}`,
  base: { repo: { id } },
})
const target = (event: string, payload: unknown) =>
  targetOfDelivery({ name: `#3 (${event})`, event, payload })
const found = { owner: 'octo', repo: 'demo', host: 'https://github.com' }

describe('targetOfDelivery', () => {
  it.each([
    ['issues', { repository, issue: { number: 1, html_url: `${WEB}/issues/1` } }, 1, 'issue'],
    [
      'issue_comment',
      { repository, issue: { html_url: `${WEB}/pull/2`, pull_request: {} }, comment: { id: 5 } },
      2,
      'pull',
    ],
    ['pull_request', { repository, number: 2, pull_request: { html_url: `${WEB}/pull/2` } }, 2, 'pull'],
    ['pull_request_review', { repository, pull_request: { html_url: `${WEB}/pull/2` } }, 2, 'pull'],
    ['check_suite', { repository, check_suite: { pull_requests: [pull(4)] } }, 4, 'pull'],
    ['check_run', { repository, check_run: { pull_requests: [pull(4), pull(4)] } }, 4, 'pull'],
    // A pull request of another repository that has this commit as its head.
    ['workflow_run', { repository, workflow_run: { pull_requests: [pull(9, 8), pull(4)] } }, 4, 'pull'],
  ])('%s', (event, payload, number, kind) => {
    expect(target(event, payload)).toEqual({ ...found, number, kind })
  })

  it("takes a Gitea's own path for pull requests", () => {
    const html_url = 'https://git.example.org/git/octo/demo/pulls/2'
    expect(target('issue_comment', { issue: { html_url }, is_pull: true })).toEqual({
      ...found,
      host: 'https://git.example.org/git',
      number: 2,
      kind: 'pull',
    })
  })

  it.each([
    ['push', { repository }, 'is about no issue or pull request. Give the target, for example octo/demo#12'],
    ['push', 'not an object', 'is about no issue or pull request. Give the target, for example octo/demo#12'],
    // The list belongs to the event, not to any member of that name.
    [
      'status',
      { repository, check_run: { pull_requests: [pull(4)] } },
      'is about no issue or pull request. Give the target, for example octo/demo#12',
    ],
    [
      'check_suite',
      { repository, check_suite: { pull_requests: [pull(9, 8)] } },
      'names no pull request. GitHub names none if its branch is in a fork. Give the target, for example octo/demo#12',
    ],
    [
      'check_suite',
      { repository, check_suite: { pull_requests: [pull(4), pull(6)] } },
      'names several pull requests: octo/demo#4, octo/demo#6. Give one of them',
    ],
    [
      'issues',
      { issue: { html_url: `${WEB}/../../x/issues/1` } },
      'has no address of an issue or pull request',
    ],
    ['issues', { issue: { html_url: 'javascript:alert(1)' } }, 'has no address of an issue or pull request'],
  ])('%s without one', (event, payload, why) => {
    expect(failure(() => target(event, payload))).toEqual({
      kind: 'no_match',
      message: `#3 (${event}) ${why}`,
    })
  })
})
