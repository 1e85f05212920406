import { readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { emitterEventNames } from '@octokit/webhooks'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { anywhere } from '../../src/base/command-line.js'
import { eventsOf, isRepeatable, nearestMatch, neverSentReason } from '../../src/senders/events.js'
import { hostEvents } from '../../src/senders/hosts.js'
import { memberOf } from '../../src/json/parse.js'
import { type Fixture, fixtureBody } from '../../src/replay/fixture.js'
import { packagedEvents } from '../../src/replay/load.js'
import { payloadBytes } from '../../src/senders/content.js'
import { commandWords, synthesize, triggerEvents } from '../../src/replay/synthesize.js'

const GITHUB = hostEvents('github')
const GITEA = hostEvents('gitea')
const GITLAB = hostEvents('gitlab')

interface Example {
  readonly event: string
  readonly payload: unknown
}

/** GitHub's published examples: of github.com, and of five versions of GitHub Enterprise Server. */
function published(): Example[] {
  const require = createRequire(import.meta.url)
  const folder = path.dirname(require.resolve('@octokit/webhooks-examples/package.json'))
  const hosts = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isDirectory())
  return hosts.flatMap(({ name: host }) => {
    const events: { name: string; examples: unknown[] }[] = require(path.join(folder, host, 'index.json'))
    return events.flatMap(({ name: event, examples }) => examples.map((payload) => ({ event, payload })))
  })
}

function fixtures(provider: string): Example[] {
  const folder = path.resolve('fixtures', provider)
  return readdirSync(folder).map((file) => {
    const fixture: Fixture = JSON.parse(readFileSync(path.join(folder, file), 'utf8'))
    const json = payloadBytes(fixtureBody(fixture))
    return { event: fixture.event, payload: JSON.parse(Buffer.from(json ?? []).toString()) }
  })
}

/** The members that Gitea and Forgejo write for each event, in the order of their structs. */
const GITEA_MEMBERS: readonly (readonly [event: string, members: string, more?: object])[] = [
  ['create', 'sha ref ref_type repository sender'],
  ['delete', 'ref ref_type pusher_type repository sender'],
  ['fork', 'forkee repository sender'],
  ['push', 'ref before after compare_url commits total_commits head_commit repository pusher sender'],
  ['issues', 'action number issue repository sender commit_id'],
  ['issue_comment', 'action issue comment repository sender is_pull'],
  ['issue_comment', 'action issue pull_request comment repository sender is_pull'],
  ['pull_request', 'action number pull_request requested_reviewer repository sender commit_id review'],
  ...['approved', 'rejected', 'comment'].map((how) => {
    const type = `pull_request_review_${how}`
    return [`pull_request_${how}`, 'action number pull_request', { review: { type } }] as const
  }),
  ['release', 'action release repository sender'],
  ['wiki', 'action repository sender page comment'],
  ['repository', 'repository organization sender', { action: 'created' }],
  ['package', 'action repository package organization sender'],
  ['status', 'commit context created_at description id sha state target_url updated_at repository sender'],
  ['workflow_job', 'action workflow_job organization repository sender'],
  ['workflow_run', 'action workflow workflow_run pull_request organization repository sender'],
]

/** Events that hooks of groups get. */
const GITLAB_ONLY_GROUPS: readonly Example[] = [
  { event: 'subgroup', payload: { event_name: 'subgroup_create', full_path: 'group/sub' } },
  { event: 'member', payload: { event_name: 'user_add_to_team', user_username: 'mona' } },
  { event: 'project', payload: { event_name: 'project_create', path_with_namespace: 'group/demo' } },
]

/** Each with the event that it is of, and how many there are at least. */
const EXAMPLES: Readonly<Record<string, readonly [examples: Example[], count: number, typeof GITHUB]>> = {
  github: [[...published(), ...fixtures('github')], 701, GITHUB],
  gitea: [[...writtenByGitea(), ...fixtures('gitea')], GITEA_MEMBERS.length + 1, GITEA],
  gitlab: [[...fixtures('gitlab-host'), ...GITLAB_ONLY_GROUPS], 26, GITLAB],
}

function writtenByGitea(): Example[] {
  return GITEA_MEMBERS.map(([event, members, more]) => {
    const entries = members.split(' ').map((name) => [name, null] as const)
    return { event, payload: { ...Object.fromEntries(entries), ...more } }
  })
}

describe('the events that a payload may be of', () => {
  it.each(Object.entries(EXAMPLES))(
    'are for each example of %s its own alone',
    (_, [examples, count, events]) => {
      expect(examples.length).toBeGreaterThanOrEqual(count)
      const wrong = examples.filter(({ event, payload }) => eventsOf(payload, events).join() !== event)
      expect(wrong).toEqual([])
    },
  )

  it('are several where events have the same members, and none of a payload that is not known', () => {
    const runs = ['action_run_failure', 'action_run_recover', 'action_run_success']
    expect(eventsOf({ action: 'success', run: {}, prior_status: 'failure' }, GITEA)).toEqual(runs)
    const unknown = { action: 'made_up', repository: {}, novelty: {} }
    const inherited: unknown = JSON.parse('{"__proto__":{"issue":1}}')
    for (const payload of [unknown, null, 'action', [1], { review: null }, inherited])
      expect(eventsOf(payload, GITHUB)).toEqual([])
  })

  it('do not depend on text that users write', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (text) => {
        const about = { issue: { body: text, title: text }, repository: { description: text } }
        expect(eventsOf({ action: 'opened', ...about }, GITHUB)).toEqual(['issues'])
      }),
    )
  })

  it('may come again with equal bytes for something new: these, and a test push of Gitea', () => {
    const repeatable = [...GITHUB].flatMap(([event, spec]) => (spec.repeatable ? [event] : []))
    expect(repeatable.join(' ')).toBe(
      'member membership org_block organization ping repository_dispatch team team_add workflow_dispatch',
    )
    expect(isRepeatable('ping', { zen: '', hook: {}, hook_id: 1 }, GITHUB)).toBe(true)
    const push = (before: string) => isRepeatable('push', { before, after: 'b' }, GITEA)
    expect([push('a'), push('b'), isRepeatable('issues', {}, GITHUB)]).toEqual([false, true, false])
  })

  it.each(['__proto__', 'constructor', 'toString.name', 'length.x'])(
    'depend on own members alone: %s',
    (at) => {
      for (const value of [{}, [], 'text', 1, null, { a: {} }]) expect(memberOf(value, at)).toBeUndefined()
      expect(memberOf(JSON.parse('{"__proto__":1}'), '__proto__')).toBe(1)
    },
  )
})

const SENT = '* *.* *.closed push.* pull_request.* repository_dispatch.anything'.split(' ')

describe('a match', () => {
  it('of what a code host sends, or this package has a fixture of, is right', () => {
    const ofFixtures = (provider: 'github' | 'gitea' | 'gitlab-host'): string[] =>
      // `push.newest` is a push of the newest generation.
      packagedEvents(provider).filter((name) => !name.endsWith('.newest'))
    const why = (name: string): unknown => neverSentReason(name, 'github', GITHUB)
    expect(
      [...emitterEventNames, ...SENT, ...ofFixtures('github')].flatMap((name) => why(name) ?? []),
    ).toEqual([])
    expect(ofFixtures('gitea').flatMap((name) => neverSentReason(name, 'gitea', GITEA) ?? [])).toEqual([])
    const never = ofFixtures('gitlab-host').flatMap((name) => neverSentReason(name, 'gitlab', GITLAB) ?? [])
    expect(never).toEqual([])
  })

  it.each([
    ['pul_request', 'github sends no event pul_request (did you mean pull_request?)'],
    ['Pull-Request.openned', 'github sends no event Pull-Request (did you mean pull_request.opened?)'],
    ['pr', 'github sends no event pr (did you mean pull_request?)'],
    ['pr.*', 'github sends no event pr (did you mean pull_request.*?)'],
    ['merge', 'github sends no event merge (did you mean pull_request.closed?)'],
    ['tag', 'github sends no event tag (did you mean create?)'],
    ['nonsense', 'github sends no event nonsense. For one of another source, write <source>/nonsense'],
    [
      'pull_request.merged',
      'github sends pull_request with other actions than merged (did you mean pull_request.closed?)',
    ],
    [
      'pull_request.synchronized',
      'github sends pull_request with other actions than synchronized (did you mean pull_request.synchronize?)',
    ],
    ['watch.xyz', 'github sends watch with other actions than xyz: started'],
    ['push.created', 'github sends push without an action (did you mean push?)'],
    ['*.openned', 'github sends no event with the action openned (did you mean *.opened?)'],
  ])('%s is not', (match, why) => {
    expect(neverSentReason(match, 'github', GITHUB)).toBe(why)
  })

  it('is right or wrong for one code host', () => {
    expect(neverSentReason('check_run', 'gitea', GITEA)).toBe(
      'gitea sends no event check_run. For one of another source, write <source>/check_run',
    )
    expect(neverSentReason('pull_request.synchronized', 'gitea', GITEA)).toBeUndefined()
    expect(nearestMatch('pr.synchronize', GITEA)).toBe('pull_request.synchronized')
  })
})

describe.each(['github', 'gitea'] as const)('a delivery of %s that is made up', (provider) => {
  it.each(triggerEvents(provider))('%s is of its event, about octo/demo, and happened now', (name) => {
    const now = Date.UTC(2030, 0, 31, 12)
    const {
      event,
      body = '',
      headers,
    } = synthesize(provider, name, now, {
      url: 'http://127.0.0.1:8788',
      words: commandWords(anywhere),
    })
    const payload: Record<string, { full_name?: string }> = JSON.parse(body)
    expect(eventsOf(payload, hostEvents(provider))).toEqual([event])
    expect([event, memberOf(payload, 'action')]).toEqual([event, name.split('.')[1]])
    expect(payload['repository']?.full_name ?? 'octo/demo').toBe('octo/demo')
    expect(body).not.toMatch(/https:\/\/(github|gitea\.example)\.com\//)
    expect(Object.keys(headers).filter((header) => /signature/i.test(header))).toEqual([])
    const subjects = ['issue', 'comment', 'pull_request', 'release', 'check_run', 'workflow_run']
    const fields = subjects.flatMap((subject) => [`${subject}.created_at`, `${subject}.updated_at`])
    const dates = fields.flatMap((field) => memberOf(payload, field) ?? [])
    expect(new Set([...dates, '2030-01-31T12:00:00Z']).size).toBe(1)
  })
})
