import { createHmac } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { expect, it } from 'vitest'
import { Secret } from '../../src/base/secret.js'
import { parseFixture } from '../../src/replay/load.js'
import { agree, installApp } from '../kit/pages.js'
import { receiver, valuesOf } from '../kit/receiver.js'
import { answerOf, call, NOW, signIn, start } from './sandbox-rig.js'

const examples: { name: string; examples: { action?: string; repository?: object }[] }[] = createRequire(
  import.meta.url,
)('@octokit/webhooks-examples')

const packaged = new Set(
  readdirSync('fixtures/github').map(
    (file) => parseFixture(readFileSync(`fixtures/github/${file}`, 'utf8'), file).body,
  ),
)

/** Deliveries of the sandbox, after a comment, a merge, a push, and the installation of an App. */
async function deliveries() {
  await using app = await receiver()
  const webhook = { url: () => app.url, secret: new Secret('x') }
  await using sandbox = await start({ webhook, checkDuration: 1, clock: () => NOW + 123 })
  const headers = await signIn(sandbox)
  await sandbox.ping()
  await call(sandbox, 'POST /repos/octo/demo/issues/1/comments', headers, { body: 'Grüße 🎉\u2028' })
  await call(sandbox, 'PUT /repos/octo/demo/pulls/2/merge', headers)
  const file = { message: 'Say hello', content: 'aGVsbG8=' }
  await call(sandbox, 'PUT /repos/octo/demo/contents/hello.md', headers, file)
  await sandbox.idle()
  await call(sandbox, 'POST /repos/octo/demo/statuses/main', headers, { state: 'success' })
  const addresses = { url: app.url, redirect_url: app.url, hook_attributes: { url: `${app.url}/app` } }
  const manifest = JSON.stringify({ name: 'App', ...addresses, default_permissions: { issues: 'write' } })
  const landing = await agree({ action: `${sandbox.url}/settings/apps/new`, manifest })
  const code = new URL(landing).searchParams.get('code')
  await call(sandbox, `POST /app-manifests/${code}/conversions`, {})
  await installApp(`${sandbox.url}/apps/app/installations/new`)
  await sandbox.idle()
  const list = await answerOf(call(sandbox, 'GET /repos/octo/demo/hooks', headers))
  return { received: app.received, list }
}

const { received, list } = await deliveries()
const eventOf = (each: (typeof received)[number]): string => valuesOf(each, 'x-github-event').join()
const all = new Map(received.filter(({ path }) => path === '/').map((each) => [eventOf(each), each]))
const sent: Record<string, Record<string, unknown>> = Object.fromEntries(
  [...all].map(([event, { body }]) => [event, JSON.parse(body.toString())]),
)

it('a delivery has the headers of a GitHub Enterprise Server, and signatures of its exact bytes', () => {
  const delivery = all.get('issue_comment')
  if (!delivery) throw new Error('nothing came')
  const { headers, body } = delivery
  const mac = (algorithm: string): string =>
    `${algorithm}=${createHmac(algorithm, 'x').update(body).digest('hex')}`
  expect(Object.fromEntries(headers.map(([name, value]) => [name.toLowerCase(), value]))).toEqual({
    accept: '*/*',
    connection: 'keep-alive',
    'content-length': String(body.length),
    'content-type': 'application/json',
    host: expect.stringMatching(/^127/),
    'user-agent': 'GitHub-Hookshot/relay',
    'x-github-delivery': expect.stringMatching(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/),
    'x-github-enterprise-host': '127.0.0.1',
    'x-github-enterprise-version': '3.19.0',
    'x-github-event': 'issue_comment',
    'x-github-hook-id': '1',
    'x-github-hook-installation-target-id': '101',
    'x-github-hook-installation-target-type': 'repository',
    'x-hub-signature': mac('sha1'),
    'x-hub-signature-256': mac('sha256'),
  })
  expect(body.toString()).toBe(JSON.stringify(JSON.parse(body.toString())))
})

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

/** Names, ids and addresses of the examples, and times with fractions. */
const LEFT =
  /Codertocat|Octocoders|Hello-World|21031067|186853002|38302899|[/@](?:api\.)?github\.com|smee\.io|:\d\d\.\d+Z/gi

it.each(received.map((each) => [each.path, eventOf(each), each.body.toString()]))(
  'what %s gets of %s has nothing left of the example, and no fractions of a second',
  (_path, _event, text) => {
    expect(text.match(LEFT)).toBeNull()
  },
)

it('an App got a ping and its installation, and the own hook is in no list of a repository', () => {
  expect(received.filter(({ path }) => path === '/app').map(eventOf)).toEqual(['ping', 'installation'])
  expect(list).toEqual({ status: 200, body: [] })
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
