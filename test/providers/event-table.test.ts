import { createRequire } from 'node:module'
import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { type Fixture, fixtureBody } from '../../src/fixtures/fixture.js'
import { parseJson } from '../../src/json/parse.js'
import { jsonOf } from '../../src/journal/payload.js'
import { CODE_HOSTS } from '../../src/providers/code-hosts.js'
import { eventsOf } from '../../src/providers/event-table.js'

const GITHUB = CODE_HOSTS.github.webhook.events
const GITEA = CODE_HOSTS.gitea.webhook.events

/** GitHub's published examples: of github.com, and of five versions of GitHub Enterprise Server. */
function published(): { event: string; payload: unknown }[] {
  const require = createRequire(import.meta.url)
  const folder = path.dirname(require.resolve('@octokit/webhooks-examples/package.json'))
  const hosts = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isDirectory())
  return hosts.flatMap(({ name: host }) => {
    const events: { name: string; examples: unknown[] }[] = require(path.join(folder, host, 'index.json'))
    return events.flatMap(({ name: event, examples }) => examples.map((payload) => ({ event, payload })))
  })
}

function fixtures(provider: string): { event: string; payload: unknown }[] {
  const folder = path.resolve('fixtures', provider)
  return readdirSync(folder).map((file) => {
    const fixture: Fixture = JSON.parse(readFileSync(path.join(folder, file), 'utf8'))
    const headers = Object.entries(fixture.headers).map(([name, value]) => [name, String(value)] as const)
    const json = jsonOf({ headers, body: fixtureBody(fixture) })
    return { event: fixture.event, payload: parseJson(json ?? new Uint8Array()) }
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

describe('the events that a payload may be of', () => {
  it('is for each published example and each fixture of GitHub its own event alone', () => {
    const examples = [...published(), ...fixtures('github')]
    expect(examples.length).toBeGreaterThan(700)
    for (const { event, payload } of examples)
      expect([event, eventsOf(payload, GITHUB)]).toEqual([event, [event]])
  })

  it("is for each of Gitea's payloads its own event alone", () => {
    const written = GITEA_MEMBERS.map(([event, members, more]) => {
      const entries = members.split(' ').map((name) => [name, null] as const)
      return { event, payload: { ...Object.fromEntries(entries), ...more } }
    })
    for (const { event, payload } of [...written, ...fixtures('gitea')])
      expect([event, eventsOf(payload, GITEA)]).toEqual([event, [event]])
  })

  it('are several where events have the same members, and none of a payload that is not known', () => {
    const runs = ['action_run_failure', 'action_run_recover', 'action_run_success']
    expect(eventsOf({ action: 'success', run: {}, prior_status: 'failure' }, GITEA)).toEqual(runs)
    const unknown = { action: 'made_up', repository: {}, novelty: {} }
    for (const payload of [unknown, null, 'action', [1], { review: null }, { __proto__: null }])
      expect(eventsOf(payload, GITHUB)).toEqual([])
  })

  it('does not depend on text that users write', () => {
    const text = { ref: 'a', before: 'b', after: 'c', commits: [], comment: {}, action: 'started' }
    const payload = { action: 'opened', issue: { ...text, body: JSON.stringify(text) }, repository: text }
    expect(eventsOf(payload, GITHUB)).toEqual(['issues'])
  })

  it('names only events of the table as repeatable', () => {
    for (const { marks, bare, repeatable } of [GITHUB, GITEA])
      expect(Object.keys(repeatable).filter((event) => !(event in marks) && !(event in bare))).toEqual([])
  })
})
