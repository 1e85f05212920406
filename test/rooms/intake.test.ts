import { createHash } from 'node:crypto'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Delivery } from '../../src/journal/types.js'
import type { WebhookRequest } from '../../src/senders/request.js'
import { summarize } from '../../src/senders/identity.js'
import { schemeOf } from '../../src/senders/senders.js'
import { createIntake, type RequestOrigin } from '../../src/webhook/intake.js'
import { giteaDelivery, githubDelivery, SECRET } from '../kit/delivery.js'
import { sourceOf } from './tunnel-rig.js'

const [GITHUB, GITEA] = [sourceOf('github', SECRET), sourceOf('gitea', SECRET)]

const FORM = 'application/x-www-form-urlencoded'
const form = (payload: string): string => new URLSearchParams({ payload }).toString()

/** What is stored of a request, or why it is refused. */
async function taken(request: WebhookRequest, from: Partial<RequestOrigin> = {}): Promise<Delivery | string> {
  let stored: Delivery | undefined
  const intake = createIntake({
    journal: {
      append: async (delivery) => {
        stored = delivery
        return { n: 1, duplicate: false, targets: [] }
      },
    },
    plan: () => ({ targets: [], onDuplicate: 'if-failed' }),
    clock: () => 1000,
  })
  try {
    await intake.receive(request, { source: GITHUB, ...from })
  } catch (error) {
    const { message, cause } = error instanceof Error ? error : new Error()
    return cause instanceof Error ? cause.message : message
  }
  return stored ?? 'nothing'
}

describe('memory', () => {
  setFlagsFromString('--expose-gc')
  const collect: (options: { readonly type: 'minor' }) => void = runInNewContext('gc')
  const SIZE = 262_144
  const json = JSON.stringify({ zen: 'x'.repeat(SIZE) })

  it.each([
    ['JSON', json],
    ['a form', `payload=${encodeURIComponent(json)}`],
  ])('of a body, %s, is free once it was taken, without a full collection', async (_, body) => {
    const isForm = !body.startsWith('{')
    const set = isForm ? { 'Content-Type': 'application/x-www-form-urlencoded' } : {}
    const request = githubDelivery({ body, set })
    const take = async (): Promise<void> => {
      expect(await taken({ ...request, body: new Uint8Array(request.body) })).toMatchObject({ event: 'push' })
    }
    await take()
    const before = process.memoryUsage().arrayBuffers
    for (let n = 0; n < 100; n++) {
      await take()
      collect({ type: 'minor' })
    }
    expect((process.memoryUsage().arrayBuffers - before) / SIZE).toBeLessThan(5)
  })
})

const badHeader = (name: string): string => `the header ${name} is missing, repeated or malformed`

describe('the event and delivery headers', () => {
  it.each([
    ['X-GitHub-Event', 'a'.repeat(101)],
    ['X-GitHub-Event', 'push/x'],
    ['X-GitHub-Event', 'pu\tsh'],
    ['X-GitHub-Event', 'é'],
    ['X-GitHub-Delivery', 'a'.repeat(201)],
    ['X-GitHub-Delivery', 'a b'],
    ['X-GitHub-Hook-ID', ['1', '1']],
    ['X-GitHub-Hook-ID', 'a b'],
  ])('are refused, before the body is read: %s %j', async (name, value) => {
    const request = githubDelivery({ body: 'no JSON', set: { [name]: value } })
    expect(await taken(request)).toBe(badHeader(name.toLowerCase()))
  })

  it("are the provider's own, and generic ones only where those are absent", async () => {
    const generic = { 'x-provider-EVENT': 'issues', 'X-Provider-Delivery': 'd-1' }
    const own = { 'X-GitHub-Event': undefined, 'X-GitHub-Delivery': undefined, 'X-GitHub-Hook-ID': undefined }
    const identity = { event: 'issues', deliveryId: 'd-1', hookId: '' }
    expect(await taken(githubDelivery({ set: { ...own, ...generic } }))).toMatchObject(identity)
    const twice = { ...generic, 'X-Provider-Delivery': ['other', 'other'] }
    const mine = { event: 'push', deliveryId: 'mine' }
    expect(await taken(githubDelivery({ id: 'mine', set: twice }))).toMatchObject(mine)
    expect(await taken(githubDelivery({ event: '', set: twice }))).toBe(badHeader('x-github-event'))
    // Gitea sends GitHub's as well.
    const set = { 'X-GitHub-Delivery': 'other', 'X-GitHub-Event': 'other', 'X-GitHub-Hook-ID': '9' }
    const gitea = giteaDelivery({ event: 'issues', id: 'd-1', set })
    expect(await taken(gitea, { source: GITEA })).toMatchObject(identity)
  })
})

it('the body is read as a form only if Content-Type says so, and stored as sent', async () => {
  const body = form('{"action":"opened"}')
  const found = { action: 'opened', body: Buffer.from(body) }
  for (const type of [FORM, 'Application/X-WWW-Form-Urlencoded; charset=utf-8', `${FORM};`])
    expect(await taken(githubDelivery({ body, type }))).toMatchObject(found)
  for (const type of [undefined, 'text/plain', `${FORM}x`, ''])
    expect(await taken(githubDelivery({ body: '{}', set: { 'Content-Type': type } }))).toBeTypeOf('object')
  const wrapped = `${body}&x=1`
  const gitea = giteaDelivery({ body: wrapped, signed: '{"action":"opened"}', type: FORM })
  expect(await taken(gitea, { source: GITEA })).toMatchObject({ ...found, body: Buffer.from(wrapped) })
})

describe('a delivery from a tunnel', () => {
  const comment = JSON.stringify({ action: 'created', issue: {}, comment: { body: '&payload=%7B%7D&' } })
  const restoredAs = async (
    event: string,
    body: string,
    more: Partial<RequestOrigin> = {},
  ): Promise<unknown> => {
    const request = more.source === GITEA ? giteaDelivery({ body, event }) : githubDelivery({ body, event })
    const delivery = await taken(request, { restored: 'compact', ...more })
    return typeof delivery === 'string' ? delivery : delivery.restored
  }

  it('is known by the digest of the signed bytes, in any form', async () => {
    const json = '{"action":"opened"}'
    const wrapped = giteaDelivery({ body: `${form(json)}&x=1`, signed: json, type: FORM })
    const one = await taken(giteaDelivery({ body: json }), { source: GITEA, restored: 'raw' })
    const other = await taken(wrapped, { source: GITEA, restored: 'form' })
    const sha256 = createHash('sha256').update(json).digest('base64url')
    expect(one).toMatchObject({ restored: { how: 'raw', sha256 } })
    expect(other).toMatchObject({ restored: { how: 'form', sha256 } })
  })

  it('is refused under an event that its payload is not of; over HTTP the header is its own', async () => {
    const why = 'the payload is of issue_comment, not of the event that the header names'
    for (const event of ['push', 'issues', 'made_up']) expect(await restoredAs(event, comment)).toBe(why)
    const proved = { how: 'compact', sha256: expect.any(String) }
    expect(await restoredAs('issue_comment', comment)).toEqual(proved)
    expect(await taken(githubDelivery({ body: comment, event: 'push' }))).toMatchObject({
      restored: undefined,
    })
  })

  it('is marked if nothing proves its event, and if the code host may send the same bytes again', async () => {
    const unknown = JSON.stringify({ action: 'created', novelty: {} })
    expect(await restoredAs('a', unknown)).toMatchObject({ unproved: true })
    const push = (before: string): string =>
      JSON.stringify({ ref: 'refs/heads/main', before, after: 'a1', commits: [{ id: 'a1' }] })
    expect(await restoredAs('push', push('a1'), { source: GITEA })).toMatchObject({ repeatable: true })
    expect(await restoredAs('push', push('b2'), { source: GITEA })).not.toHaveProperty('repeatable')
  })

  it('has no payload in the text of a comment, whatever its Content-Type says', async () => {
    const request = githubDelivery({ body: comment, type: FORM, event: 'push' })
    for (const from of [{}, { restored: 'raw' }])
      expect(await taken(request, from)).toBe('the body is not a form with a payload')
  })
})

describe('summarize', () => {
  const nothing = { action: null, repo: null, number: null }
  const longest = `refs/heads/${'b'.repeat(255)}`

  it.each<[payload: unknown, found: object]>([
    [null, {}],
    ['action', {}],
    [5, {}],
    [[{ action: 'opened' }], {}],
    [{ action: 1, repository: 'octo/demo', number: '7', issue: [], pull_request: null }, {}],
    [{ number: 0, issue: { number: -1 }, pull_request: { number: 1.5 } }, {}],
    [{ number: 2 ** 53 }, {}],
    [{ action: '', repository: { full_name: '' } }, {}],
    [{ action: 'a'.repeat(257), repository: { full_name: 'a'.repeat(257) } }, {}],
    [{ action: 'a\u001b[31m', repository: { full_name: 'a\nb' } }, {}],
    [{ action: '\ud800' }, {}],
    [{ ref: 'refs/heads/main' }, { ref: 'refs/heads/main' }],
    [{ ref: 'v1.0', ref_type: 'tag' }, { ref: 'v1.0' }],
    [{ release: { tag_name: 'v1.0' } }, { ref: 'v1.0' }],
    [{ ref: longest }, { ref: longest }],
    [{ ref: `${longest}b` }, {}],
    [{ ref: 7, release: 'v1.0' }, {}],
    [{ ref: 'refs/heads/a\n' }, {}],
  ])('finds in %j: %j', (payload, found) => {
    expect(summarize(payload, new Map(), schemeOf('github'))).toEqual({ ...nothing, ...found })
  })

  it('accepts any JSON', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (payload) => {
        const found = Object.keys({ ref: null, ...summarize(payload, new Map(), schemeOf('github')) })
        expect(found).toEqual(['ref', 'action', 'repo', 'number'])
      }),
    )
  })
})
