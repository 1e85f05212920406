import { readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { expect, it } from 'vitest'
import { Secret } from '../../src/base/secret.js'
import { parseFixture } from '../../src/replay/load.js'
import { scriptedServer } from '../helpers/scripted-server.js'
import { call, signIn, start } from './sandbox-rig.js'

const examples: { name: string; examples: { action?: string; repository?: object }[] }[] = createRequire(
  import.meta.url,
)('@octokit/webhooks-examples')

const packaged = new Set(
  readdirSync('fixtures/github').map(
    (file) => parseFixture(readFileSync(`fixtures/github/${file}`, 'utf8'), file).body,
  ),
)

/** Payloads of the sandbox by event, after a comment and a merge. */
async function deliveries(): Promise<Record<string, Record<string, unknown>>> {
  await using receiver = await scriptedServer(() => ({}))
  await using sandbox = await start({
    webhook: { url: () => receiver.url, secret: new Secret('x') },
    checkDuration: 1,
  })
  const headers = await signIn(sandbox)
  await sandbox.ping()
  await call(sandbox, 'POST /repos/octo/demo/issues/1/comments', headers, { body: 'hello' })
  await call(sandbox, 'PUT /repos/octo/demo/pulls/2/merge', headers)
  const file = { message: 'Say hello', content: 'aGVsbG8=' }
  await call(sandbox, 'PUT /repos/octo/demo/contents/hello.md', headers, file)
  await sandbox.idle()
  await call(sandbox, 'POST /repos/octo/demo/statuses/main', headers, { state: 'success' })
  await sandbox.idle()
  return Object.fromEntries(
    receiver.received.map(({ headers, body }) => [headers['x-github-event'], JSON.parse(body)]),
  )
}

const sent = await deliveries()

/** What only some hooks, actions or versions of GitHub send, and the commit of a status, of which the sandbox sends the links. */
const VARIES =
  /\.(?:installation|organization|changes|assignee|label|requested_\w+|app_id|draft|deployment|username)$|\.permissions\.|^status\.commit\./

it.each(Object.keys(sent))('%s has every field that GitHub sends, of the same type', (event) => {
  const all = examples.find(({ name }) => name === event)?.examples ?? []
  // What the sandbox sends is made of the packaged examples: the others show whether it is complete.
  const others = all.filter((example) => example.repository && !packaged.has(JSON.stringify(example)))
  expect(others.length).toBeGreaterThan(0)
  const missing = others.flatMap((example) => lacking(example, sent[event], event))
  expect([...new Set(missing)].filter((path) => !VARIES.test(path))).toEqual([])
})

it.each(Object.keys(sent))('%s has nothing left of the example', (event) => {
  const text = JSON.stringify(sent[event])
  expect(
    text.match(/Codertocat|Octocoders|Hello-World|octocoders|api\.github\.com|@github\.com|smee\.io/gi),
  ).toBeNull()
})

it('describes the change', () => {
  expect(sent['ping']).toMatchObject({
    hook_id: 1,
    repository: { full_name: 'octo/demo' },
    sender: { login: 'octo' },
  })
  expect(sent['issue_comment']).toMatchObject({
    action: 'created',
    issue: { number: 1, comments: 1 },
    comment: { body: 'hello', user: { login: 'octo' } },
    repository: { full_name: 'octo/demo' },
    sender: { login: 'octo' },
  })
  expect(sent['issue_comment']?.['issue']).not.toHaveProperty('pull_request')
  expect(sent['pull_request']).toMatchObject({
    action: 'closed',
    number: 2,
    pull_request: { number: 2, state: 'closed', merged: true, merged_by: { login: 'octo' } },
    repository: { full_name: 'octo/demo', open_issues: 4 },
    sender: { login: 'octo' },
  })
})

/** Paths of the fields in `real` that `ours` lacks or has with another type; null matches every type. */
function lacking(real: unknown, ours: unknown, path: string): string[] {
  if (ours === undefined) return [path]
  if (real === null || ours === null || Array.isArray(real)) return []
  if (typeof real !== typeof ours) return [`${path}: ${typeof ours}`]
  if (typeof real !== 'object') return []
  const inner = new Map(Object.entries(ours))
  return Object.entries(real).flatMap(([key, value]) => lacking(value, inner.get(key), `${path}.${key}`))
}
