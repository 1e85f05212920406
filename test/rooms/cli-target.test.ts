import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { RelayError } from '../../src/base/errors.js'
import {
  requireOwnHost,
  formatTarget,
  parseTarget,
  type ActionTarget,
  targetOfDelivery,
} from '../../src/cli/target.js'
import { failure } from './cli-shell.js'

const HOST = 'https://github.com'
const WEB = `${HOST}/octo/demo`
const issue = { owner: 'octo', repo: 'demo', number: 12, kind: 'issue', host: HOST } as const
const pull = { ...issue, kind: 'pull' } as const

it.each<[string, ActionTarget]>([
  ['HTTPS://GitHub.com/octo/demo/issues/12', issue],
  [`${HOST}:443/octo/demo/issues/12`, issue],
  [`${WEB}/pull/12/files?w=1`, pull],
  [`${WEB}/pull/12/?q=1#issuecomment-5`, { ...pull, comment: { kind: 'issue', id: 5 } }],
  [`${WEB}/pull/12/files#r7`, { ...pull, comment: { kind: 'review', id: 7 } }],
])('the target %s', (text, target) => {
  expect(parseTarget(text)).toEqual(target)
})

const NAMES = 'octo octo/demo octo/demo# octo/demo#0 octo/demo#012 octo/demo#-1 octo/demo#1.5'
const DOTS = 'octo/demo#9007199254740993 octo/../demo#1 ./demo#1 ../demo#1 octo/..#1'
const PAGES = '/issues /issues/0 /issues/12x /wiki/12 /issues/12/edit'
const ANCHORS = '/issues/12#issuecomment- /issues/12#issuecomment-0 /pull/12#pullrequestreview-3'

it.each([
  ...`${NAMES} ${DOTS}`.split(' '),
  ...` ${PAGES} ${ANCHORS}`.split(' ').map((page) => WEB + page),
  '',
  'octo/demo#1 ',
  'octo/de mo#1',
  `octo/${'x'.repeat(101)}#1`,
  HOST,
  `${HOST}/octo/%2e%2e/issues/12`,
  `${HOST}/octo/d%20emo/issues/12`,
  'https://user:secret@github.com/octo/demo/issues/12',
  'ftp://github.com/octo/demo/issues/12',
  'javascript:octo/demo/issues/12',
])('no target is %j, a usage error with an example', (text) => {
  const said = `${JSON.stringify(text)} is not an issue, pull request or comment. Give for example octo/demo#12, or its web address`
  expect(() => parseTarget(text)).toThrow(new RelayError('usage', said))
})

it.each([
  ['http://github.com', HOST],
  ['https://github.com.evil.example', HOST],
  ['https://example.org', 'https://example.org/git'],
  ['https://example.org/git', 'https://example.org'],
])('requireOwnHost finds that %s is elsewhere than %s', (there, here) => {
  const said = `The address is on ${there}, but this profile uses ${here}. Give an address there, or owner/repo#12`
  const target = parseTarget(`${there}/octo/demo/issues/12`)
  expect(() => requireOwnHost(target, here)).toThrow(new RelayError('usage', said))
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
  const pages = fc.constantFrom(['issues', 'issue'], ['pull', 'pull'], ['pulls', 'pull'])
  const ends = fc.constantFrom('', '/', '?a=b', '/?a=b#issue-1')
  const comments = fc.constantFrom(['#issuecomment-', 'issue'], ['#discussion_r', 'review'])

  it('every address of an issue, a pull request or a comment on any host is read', () => {
    const address = fc.tuple(place, hosts, pages, ends, comments, number)
    fc.assert(
      fc.property(address, ([target, host, [page, kind], end, [anchor, on], id]) => {
        expect(parseTarget(formatTarget(target))).toEqual(target)
        const at = `${host}/${target.owner}/${target.repo}/${page}/${target.number}`
        const found = { ...target, kind, host }
        expect(parseTarget(at + end)).toEqual(found)
        expect(parseTarget(`${at}${anchor}${id}`)).toEqual({ ...found, comment: { kind: on, id } })
        expect(() => requireOwnHost(parseTarget(at + end), host)).not.toThrow()
      }),
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

describe('the target of a delivery', () => {
  const repository = { id: 7, full_name: 'octo/demo', html_url: WEB }
  const pullOf = (number: number, id = 7) => ({
    number,
    url: `https://x/pulls/${number}`,
    base: { repo: { id } },
  })
  const suite = (...pull_requests: object[]) => ({ repository, check_suite: { pull_requests } })
  const on = (at: string, more: object = {}) => ({ repository, issue: { html_url: `${WEB}/${at}` }, ...more })
  const commented = (html_url: unknown) => on('issues/1', { comment: { html_url } })
  const asIssue = { owner: 'octo', repo: 'demo', host: HOST, kind: 'issue', number: 1 }
  const asPull = (number: number) => ({ ...asIssue, kind: 'pull', number })
  const GITEA = 'https://git.example.org/git'
  const HELP = 'Give the target, for example octo/demo#12'
  const NONE = 'names no pull request. GitHub names none'
  const SEVERAL = 'names several pull requests'
  const onComment = { ...asIssue, comment: { kind: 'issue', id: 5 } }
  const ofGitea = { issue: { html_url: `${GITEA}/octo/demo/pulls/2` }, is_pull: true }
  const reviewed = {
    repository,
    pull_request: { html_url: `${WEB}/pull/2` },
    comment: { html_url: `${WEB}/pull/2#discussion_r7` },
  }

  const target = (event: string, payload: unknown) =>
    targetOfDelivery({ name: `#3 (${event})`, event, payload })

  it.each<[string, object, object]>([
    ['issues', on('issues/1'), asIssue],
    ['issue_comment', on('pull/2', { comment: { id: 5 } }), asPull(2)],
    ['pull_request', { repository, pull_request: { html_url: `${WEB}/pull/2` } }, asPull(2)],
    ['check_suite', suite(pullOf(4)), asPull(4)],
    ['check_run', { repository, check_run: { pull_requests: [pullOf(4), pullOf(4)] } }, asPull(4)],
    // A pull request of another repository that has this commit as its head.
    ['workflow_run', { repository, workflow_run: { pull_requests: [pullOf(9, 8), pullOf(4)] } }, asPull(4)],
    ['issue_comment', commented(`${WEB}/issues/1#issuecomment-5`), onComment],
    ['issue_comment', commented(`${WEB}/issues/2#issuecomment-5`), asIssue],
    ['issue_comment', commented(`${WEB}/commit/abc#commitcomment-5`), asIssue],
    ['issue_comment', commented('x'), asIssue],
    ['issue_comment', commented(7), asIssue],
    ['pull_request_review_comment', reviewed, { ...asPull(2), comment: { kind: 'review', id: 7 } }],
    // Gitea's own path for pull requests.
    ['issue_comment', ofGitea, { ...asPull(2), host: GITEA }],
  ])('%s: %j', (event, payload, found) => {
    expect(target(event, payload)).toEqual(found)
  })

  it.each<[string, unknown, string]>([
    ['push', 'not an object', `is about no issue or pull request. ${HELP}`],
    // The list belongs to the event, not to any member of that name.
    ['status', suite(pullOf(4)), `is about no issue or pull request. ${HELP}`],
    ['check_suite', suite(pullOf(9, 8)), `${NONE} if its branch is in a fork. ${HELP}`],
    ['check_suite', suite(pullOf(4), pullOf(6)), `${SEVERAL}: octo/demo#4, octo/demo#6. Give one of them`],
    ['issues', on('../../x/issues/1'), 'has no address of an issue or pull request'],
    ['issues', { issue: { html_url: 'javascript:alert(1)' } }, 'has no address of an issue or pull request'],
  ])('%s without one: %j', (event, payload, why) => {
    const message = `#3 (${event}) ${why}`
    expect(failure(() => target(event, payload))).toEqual({ kind: 'no_match', message })
  })
})
