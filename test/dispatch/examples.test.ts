import { createRequire } from 'node:module'
import { describe, expect, it } from 'vitest'
import { Disposal } from '../../src/base/disposal.js'
import { verify } from '../helpers/sign.js'
import { SECRETS } from '../helpers/delivery.js'
import { startTarget, valuesOf } from '../helpers/target.js'
import { createRig } from './rig.js'

interface Sent {
  readonly id: string
  readonly event: string
  readonly action: string | undefined
  readonly body: string
}

const COUNT = 1000

/** GitHub's example payloads of all kinds of event, over and over, in different spellings of the same JSON. */
function examples(): Sent[] {
  const require = createRequire(import.meta.url)
  const kinds: { name: string; examples: { action?: string }[] }[] = require('@octokit/webhooks-examples')
  const all = kinds.flatMap(({ name, examples }) => examples.map((payload) => ({ name, payload })))
  return Array.from({ length: COUNT }, (_, i) => {
    const { name, payload } = all[i % all.length] ?? { name: '', payload: {} }
    return { id: `${i}`, event: name, action: payload.action, body: JSON.stringify(payload, null, i % 3) }
  })
}

/** Each match, and what it means in words of its own. */
const ROUTES: [match: string, takes: (sent: Sent) => boolean][] = [
  ['*', () => true],
  ['push', ({ event }) => event === 'push'],
  ['pull_request', ({ event }) => event === 'pull_request'],
  ['pull_request.*', ({ event }) => event === 'pull_request'],
  ['pull_request.opened', ({ event, action }) => event === 'pull_request' && action === 'opened'],
  ['*.created', ({ action }) => action === 'created'],
  ['issue_comment.*', ({ event }) => event === 'issue_comment'],
  ['push.opened', () => false],
  ['check_run.completed', ({ event, action }) => event === 'check_run' && action === 'completed'],
  ['*.*', () => true],
]

describe('a thousand deliveries of all kinds over ten routes', () => {
  it.each([1, 8])('reach exactly the targets they match, unchanged (%i at once)', async (concurrency) => {
    const sent = examples()
    await using stack = new Disposal()
    const targets = []
    for (const [match, takes] of ROUTES)
      targets.push({ match, takes, server: stack.use(await startTarget()) })
    const forward = targets.map(({ match, server }) => `${match}=${server.url}`)
    await using rig = await createRig({ forward, concurrency })
    for (const { id, event, body } of sent) await rig.receive({ id, event, body })
    await rig.dispatcher.idle()
    expect(new Set(sent.map(({ event }) => event)).size).toBeGreaterThanOrEqual(58)
    const byId = new Map(sent.map((each) => [each.id, each]))
    for (const { match, takes, server } of targets) {
      const ids = server.received.map((handed) => valuesOf(handed, 'x-github-delivery')[0] ?? '')
      const wanted = sent.filter(takes).map(({ id }) => id)
      const inOrder = concurrency === 1 ? ids : ids.toSorted((one, two) => Number(one) - Number(two))
      expect([match, inOrder]).toEqual([match, wanted])
      const changed = server.received.filter(
        ({ body }, i) => body.toString() !== byId.get(ids[i] ?? '')?.body,
      )
      const unsigned = server.received.filter(
        (handed) => verify(valuesOf(handed, 'x-hub-signature-256')[0], handed.body, SECRETS) !== 'current',
      )
      expect([changed, unsigned]).toEqual([[], []])
    }
    expect([rig.attempts.length, rig.states, rig.said]).toEqual([
      targets.reduce((sum, { server }) => sum + server.received.length, 0),
      [],
      [],
    ])
  })
})
