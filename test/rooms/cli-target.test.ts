import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { RelayError } from '../../src/base/errors.js'
import {
  requireOwnHost,
  formatTarget,
  parseTarget,
  type ActionTarget,
  targetAt,
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
  [`${WEB}/pull/12#pullrequestreview-3`, pull],
  ['github.com/octo/demo/pull/12', { ...pull, host: 'github.com' }],
  ['localhost:3000/octo/demo/issues/12', { ...issue, host: 'localhost:3000' }],
])('the target %s', (text, target) => {
  expect(parseTarget(text)).toEqual(target)
})

/** What people copy from a browser, after the address of a pull request. */
const COPIED = [
  '',
  ...'/ /files /files/ /changes /commits /checks /conflicts .diff .patch'.split(' '),
  `/commits/${'a'.repeat(40)}`,
  ...'/files/1a2b3c4..5d6e7f8 /changes/1a2b3c4..5d6e7f8 ?notification_referrer_id=NT_x&w=1'.split(' '),
  ...'/files?diff=split&w=1 /checks?check_run_id=7 # #diff-0c1d-abR12 /files#diff-0c1dR1-R9'.split(' '),
  ...'#pullrequestreview-3 #event-55 #top #issue-5 /files?short_path=a#diff-9 #%E2%9C%93'.split(' '),
]
/** Address of a code host as it is set, and as it is copied. */
const COPIED_HOSTS: readonly [set: string, copied: string][] = [
  [HOST, HOST],
  [HOST, 'github.com'],
  [HOST, 'www.github.com'],
  [HOST, 'https://www.github.com'],
  [HOST, 'GitHub.com'],
  ['https://ghes.example/gh', 'ghes.example/gh'],
  ['https://example.org/git', 'www.example.org/git'],
  ['http://127.0.0.1:3000', '127.0.0.1:3000'],
  ['http://localhost:3000/git', 'localhost:3000/git'],
]

it.each(COPIED_HOSTS)('addresses of %s are targets as %s', (set, copied) => {
  for (const [page, kind] of [
    ['pull', 'pull'],
    ['pulls', 'pull'],
    ['issues', 'issue'],
  ])
    for (const end of COPIED) {
      const target = parseTarget(`${copied}/octo/demo/${page}/12${end}`)
      expect(target).toMatchObject({ owner: 'octo', repo: 'demo', number: 12, kind })
      expect(target.comment).toBeUndefined()
      requireOwnHost(target, set)
    }
})

const NAMES = 'octo octo/demo octo/demo# octo/demo#0 octo/demo#012 octo/demo#-1 octo/demo#1.5'
const DOTS = 'octo/demo#9007199254740993 octo/../demo#1 ./demo#1 ../demo#1 octo/..#1'
const PAGES = '/issues /issues/0 /issues/12x /wiki/12 /issues/12/edit'
const ANCHORS = '/issues/12#issuecomment- /issues/12#issuecomment-0 /pull/12/files#r7x /pull/12#discussion_r'

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
  ['github.com.evil.example', HOST],
  ['www.evil.example', HOST],
  ['www.www.github.com', HOST],
  ['github.com', 'https://www.example.org'],
])('requireOwnHost finds that %s is elsewhere than %s', (there, here) => {
  const said = `The address is on ${there}, but this profile uses ${here}. Give an address there, or owner/repo#12`
  const target = parseTarget(`${there}/octo/demo/issues/12`)
  expect(() => requireOwnHost(target, here)).toThrow(new RelayError('usage', said))
})

/** A GitLab with a path, and one without. */
it.each<[set: string, text: string, ActionTarget | undefined]>(
  ['https://gitlab.com', 'https://git.example/lab'].flatMap(
    (url): [string, string, ActionTarget | undefined][] => {
      const there = { owner: 'group/sub', repo: 'demo', host: url }
      const page = `${url}/group/sub/demo/-`
      const asPull = { ...there, number: 12, kind: 'pull', mark: '!' } as const
      const asIssue = { ...there, number: 3, kind: 'issue' } as const
      return [
        [url, 'group/sub/demo!12', { owner: 'group/sub', repo: 'demo', number: 12, kind: 'pull', mark: '!' }],
        [url, 'group/sub/demo#3', { owner: 'group/sub', repo: 'demo', number: 3 }],
        [url, `${page}/merge_requests/12`, asPull],
        [
          url,
          `${page}/merge_requests/12/diffs?commit_id=a#note_7`,
          { ...asPull, comment: { kind: 'issue', id: 7 } },
        ],
        [url, `${page}/merge_requests/12/pipelines`, asPull],
        [url, `${page}/merge_requests/12.diff`, asPull],
        [url, `${page}/issues/3#note_7`, { ...asIssue, comment: { kind: 'issue', id: 7 } }],
        [url, `${page}/work_items/3`, asIssue],
        [url, `${page}/work_items/3?show=x`, asIssue],
        [url, `${page}/issues/incident/3`, asIssue],
        [url, `${page}/merge_requests/12/diffs#note_7`, { ...asPull, comment: { kind: 'issue', id: 7 } }],
        [url, `${page}/merge_requests/12/diffs?diff_id=1&start_sha=abc#0f_1_2`, asPull],
        [url, `${page}/merge_requests/12/conflicts`, asPull],
        ...(['group/sub', 'Group.a/Sub_b', 'g'] as const).flatMap(
          (owner): [string, string, ActionTarget | undefined][] => {
            const named = { owner, repo: 'demo' }
            const pull = { ...named, number: 12, kind: 'pull', mark: '!' } as const
            const comment = { kind: 'issue', id: 7 } as const
            const own: [string, ActionTarget][] = [
              [`${owner}/demo!12#note_7`, { ...pull, comment }],
              [`${owner}/demo#3#note_7`, { ...named, number: 3, comment }],
            ]
            const paths: [string, ActionTarget][] = [
              [`${owner}/demo/-/merge_requests/12`, pull],
              [`${owner}/demo/-/merge_requests/12/diffs?x=1#note_7`, { ...pull, comment }],
              [`${owner}/demo/-/issues/3`, { ...named, number: 3, kind: 'issue' }],
              [`${owner}/demo/-/work_items/3`, { ...named, number: 3, kind: 'issue' }],
            ]
            // Before the first slash, a name with a dot is that of a host.
            const known = owner.includes('.') ? own : [...own, ...paths]
            return known.map(([text, target]) => [url, text, target])
          },
        ),
        [url, 'group/sub/demo!12#note_', undefined],
        [url, 'group/sub/demo!12#note_x', undefined],
        [url, `${url}/groups/group/-/work_items/3`, undefined],
        [url, 'other.example/group/demo/-/issues/3', undefined],
        [
          url,
          `${url.replace('https://', '')}/group/sub/demo/-/issues/3`,
          { ...asIssue, host: url.replace('https://', '') },
        ],
        [url, `${page}/issues/3#note_`, undefined],
        [url, `${page}/issues/3#note_x`, undefined],
        [url, `${page}/boards/3`, undefined],
        [url, 'group/../demo!12', undefined],
        [url, 'group//demo!12', undefined],
        [url, 'demo!12', undefined],
        ['https://other.example', `${page}/issues/3`, undefined],
      ]
    },
  ),
)('at %s, %s is a target or a usage error', (url, text, target) => {
  let read: unknown
  try {
    read = targetAt(parseTarget(text), { url, nestedOwners: true })
  } catch (error) {
    read = error
  }
  expect(read instanceof RelayError ? undefined : read).toEqual(target)
})

it.each([
  'group/sub/demo#3',
  `${HOST}/octo/demo/-/merge_requests/2`,
  'octo/demo#3#note_4',
  'group/demo/-/issues/3',
])('%s is no target where owners have no groups', (text) => {
  const read = () => targetAt(parseTarget(text), { url: HOST, nestedOwners: false })
  expect(read).toThrow(/is not an issue, pull request or comment/)
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
        const there = (text: string) => targetAt(parseTarget(text), { url: host, nestedOwners: false })
        expect(there(at + end)).toEqual(found)
        expect(there(`${at}${anchor}${id}`)).toEqual({ ...found, comment: { kind: on, id } })
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
