import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { RelayError } from '../../src/base/errors.js'
import { checkHost, formatTarget, parseTarget, type Target, targetOfDelivery } from '../../src/cli/target.js'
import { failure } from './cli-shell.js'

const HOST = 'https://github.com'
const issue = { owner: 'octo', repo: 'demo', number: 12, kind: 'issue', host: HOST } as const
const pull = { ...issue, kind: 'pull' } as const
const comment = (kind: 'issue' | 'review', id: number) => ({ comment: { kind, id } })

describe('parseTarget', () => {
  it.each<[string, Target]>([
    ['o-c.t_o/.github#1', { owner: 'o-c.t_o', repo: '.github', number: 1 }],
    ['HTTPS://GitHub.com/octo/demo/issues/12', issue],
    [`${HOST}:443/octo/demo/issues/12`, issue],
    [`${HOST}/octo/demo/issues/12#issue-99`, issue],
    [`${HOST}/octo/demo/pull/12/files?w=1`, pull],
    [`${HOST}/octo/demo/pull/12/?q=1#issuecomment-5`, { ...pull, ...comment('issue', 5) }],
    [`${HOST}/octo/demo/pull/12/files#r7`, { ...pull, ...comment('review', 7) }],
  ])('%s', (text, target) => {
    expect(parseTarget(text)).toEqual(target)
  })

  it.each([
    '',
    'octo',
    'octo/demo',
    'octo/demo#',
    'octo/demo#0',
    'octo/demo#012',
    'octo/demo#-1',
    'octo/demo#1.5',
    'octo/demo#9007199254740993',
    'octo/demo#1 ',
    'octo/../demo#1',
    './demo#1',
    '../demo#1',
    'octo/..#1',
    'octo/de mo#1',
    `octo/${'x'.repeat(101)}#1`,
    HOST,
    `${HOST}/octo/demo`,
    `${HOST}/octo/demo/issues`,
    `${HOST}/octo/demo/issues/0`,
    `${HOST}/octo/demo/issues/12x`,
    `${HOST}/octo/demo/wiki/12`,
    `${HOST}/octo/demo/issues/12/edit`,
    `${HOST}/octo/demo/issues/12#issuecomment-`,
    `${HOST}/octo/demo/issues/12#issuecomment-0`,
    `${HOST}/octo/demo/pull/12#pullrequestreview-3`,
    `${HOST}/octo/%2e%2e/issues/12`,
    `${HOST}/octo/d%20emo/issues/12`,
    'https://user:secret@github.com/octo/demo/issues/12',
    'ftp://github.com/octo/demo/issues/12',
    'javascript:octo/demo/issues/12',
  ])('%j is a usage error with an example', (text) => {
    const said = `${JSON.stringify(text)} is not an issue, pull request or comment. Give for example octo/demo#12, or its web address`
    expect(() => parseTarget(text)).toThrow(new RelayError('usage', said))
  })
})

it.each([
  ['http://github.com/octo/demo/issues/12', 'http://github.com', HOST],
  ['https://github.com.evil.example/octo/demo/issues/12', 'https://github.com.evil.example', HOST],
  ['https://example.org/octo/demo/issues/12', 'https://example.org', 'https://example.org/git'],
  ['https://example.org/git/octo/demo/issues/12', 'https://example.org/git', 'https://example.org'],
])('checkHost finds that %s is elsewhere', (text, there, here) => {
  const said = `The address is on ${there}, but this profile uses ${here}. Give an address there, or owner/repo#12`
  expect(() => checkHost(parseTarget(text), here)).toThrow(new RelayError('usage', said))
})

describe('laws', () => {
  const name = fc.stringMatching(/^[A-Za-z0-9._-]{1,100}$/).filter((text) => text !== '.' && text !== '..')
  const number = fc.integer({ min: 1, max: 10 ** 15 - 1 })
  const place = fc.record({ owner: name, repo: name, number })
  const hosts = fc.constantFrom(
    HOST,
    'http://127.0.0.1:8788',
    'https://example.org/git',
    'https://[::1]:3000/a/b',
  )
  const pages = fc.constantFrom(
    ['issues', 'issue'] as const,
    ['pull', 'pull'] as const,
    ['pulls', 'pull'] as const,
  )
  const ends = fc.constantFrom('', '/', '?a=b', '/?a=b#issue-1')
  const comments = fc.constantFrom(['#issuecomment-', 'issue'] as const, ['#discussion_r', 'review'] as const)

  it('formatted values parse to the same value', () => {
    fc.assert(
      fc.property(place, (target) => {
        expect(parseTarget(formatTarget(target))).toEqual(target)
      }),
    )
  })

  it('every address of an issue, a pull request or a comment on any host is read', () => {
    fc.assert(
      fc.property(
        place,
        hosts,
        pages,
        ends,
        comments,
        number,
        (target, host, page, end, [anchor, on], id) => {
          const { owner, repo, number } = target
          const address = `${host}/${owner}/${repo}/${page[0]}/${number}`
          const found = { ...target, kind: page[1], host }
          expect(parseTarget(address + end)).toEqual(found)
          expect(parseTarget(address + anchor + id)).toEqual({ ...found, comment: { kind: on, id } })
          expect(() => checkHost(parseTarget(address + end), host)).not.toThrow()
        },
      ),
    )
  })

  it('any text is a target or a usage error', () => {
    const near = fc.tuple(fc.string(), hosts, fc.string()).map(([a, b, c]) => `${b}/${a}/${c}/issues/1`)
    const texts = fc.oneof(fc.string({ unit: 'binary' }), fc.webUrl({ withFragments: true }), near)
    fc.assert(
      fc.property(texts, (text) => {
        expect(readsWell(text) || failure(() => parseTarget(text)).kind).toBeOneOf([true, 'usage'])
      }),
    )
  })
})

function readsWell(text: string): boolean {
  try {
    const { owner, repo, number } = parseTarget(text)
    const named = /^(?!\.{1,2}\/)[\w.-]{1,100}\/(?!\.{1,2}$)[\w.-]{1,100}$/.test(`${owner}/${repo}`)
    return named && Number.isSafeInteger(number) && number > 0
  } catch {
    return false
  }
}

const WEB = 'https://github.com/octo/demo'
const repository = { id: 7, full_name: 'octo/demo', html_url: WEB }
const pullOf = (number: number, id = 7) => ({
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
    ['check_suite', { repository, check_suite: { pull_requests: [pullOf(4)] } }, 4, 'pull'],
    ['check_run', { repository, check_run: { pull_requests: [pullOf(4), pullOf(4)] } }, 4, 'pull'],
    // A pull request of another repository that has this commit as its head.
    ['workflow_run', { repository, workflow_run: { pull_requests: [pullOf(9, 8), pullOf(4)] } }, 4, 'pull'],
  ])('%s', (event, payload, number, kind) => {
    expect(target(event, payload)).toEqual({ ...found, number, kind })
  })

  it('names the comment that the delivery is about', () => {
    const issue = { html_url: `${WEB}/issues/1` }
    const on = (html_url: unknown): unknown =>
      target('issue_comment', { repository, issue, comment: { html_url } })
    const named = { ...found, number: 1, kind: 'issue' }
    expect(on(`${WEB}/issues/1#issuecomment-5`)).toEqual({ ...named, comment: { kind: 'issue', id: 5 } })
    for (const other of [`${WEB}/issues/2#issuecomment-5`, `${WEB}/commit/abc#commitcomment-5`, 'x', 7])
      expect(on(other)).toEqual(named)
    const pull_request = { html_url: `${WEB}/pull/2` }
    const comment = { html_url: `${WEB}/pull/2#discussion_r7` }
    expect(target('pull_request_review_comment', { repository, pull_request, comment })).toEqual({
      ...found,
      number: 2,
      kind: 'pull',
      comment: { kind: 'review', id: 7 },
    })
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
    ['push', 'not an object', 'is about no issue or pull request. Give the target, for example octo/demo#12'],
    // The list belongs to the event, not to any member of that name.
    [
      'status',
      { repository, check_run: { pull_requests: [pullOf(4)] } },
      'is about no issue or pull request. Give the target, for example octo/demo#12',
    ],
    [
      'check_suite',
      { repository, check_suite: { pull_requests: [pullOf(9, 8)] } },
      'names no pull request. GitHub names none if its branch is in a fork. Give the target, for example octo/demo#12',
    ],
    [
      'check_suite',
      { repository, check_suite: { pull_requests: [pullOf(4), pullOf(6)] } },
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
