import { Webhooks } from '@octokit/webhooks'
import { Hono } from 'hono'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Secret } from '../../src/base/secret.js'
import { fixtureBody, toFixture } from '../../src/fixtures/fixture.js'
import {
  type Fixture,
  loadFixture,
  loadFixtures,
  signedRequest,
  TEST_SECRET,
} from '../../src/testing/index.js'
import { sign, verify } from '../helpers/sign.js'

const opened = await loadFixture('fixtures/github/issues.opened.json')
const all = await loadFixtures('fixtures')

/** What an application gets to see. */
async function seen(request: Request) {
  const body = Buffer.from(await request.clone().arrayBuffer())
  return { body, signature: request.headers.get('x-hub-signature-256') ?? '' }
}

describe('signedRequest', () => {
  it.each(all)('$name: exact bytes with any secret', async ({ fixture }) => {
    const recorded = Buffer.from(fixtureBody(fixture))
    for (const secret of [TEST_SECRET, 'another']) {
      const { body, signature } = await seen(signedRequest(fixture, { secret }))
      expect(body.equals(recorded)).toBe(true)
      // Bytes that are no text, and Gitea's forms, whose JSON is signed, are beyond that verifier.
      const text = fixture.body ?? ''
      const isForm = String(fixture.headers['Content-Type']).includes('urlencoded')
      if (text === '' || (isForm && fixture.provider === 'gitea')) continue
      expect(await new Webhooks({ secret }).verify(text, signature)).toBe(true)
    }
  })

  it('has the exact body and a valid signature for any body and secret', async () => {
    const given = [
      fc.uint8Array({ maxLength: 300 }),
      fc.string({ minLength: 1 }),
      fc.string({ minLength: 1 }),
    ] as const
    await fc.assert(
      fc.asyncProperty(...given, async (bytes, recordedWith, secret) => {
        const headers = [['X-Hub-Signature-256', sign(recordedWith, bytes)]] as const
        const identity = { provider: 'github', event: 'push', deliveryId: '1' }
        const { body, signature } = await seen(
          signedRequest(toFixture({ ...identity, headers, body: bytes }), { secret }),
        )
        expect(body.equals(bytes)).toBe(true)
        expect(verify(signature, bytes, { current: new Secret(secret) })).toBe('current')
      }),
    )
  })

  it('is a standard Request with the recorded headers', () => {
    const request = signedRequest(opened, { keepId: true })
    expect(request).toBeInstanceOf(globalThis.Request)
    expect([request.method, request.url]).toEqual(['POST', 'http://localhost/webhook'])
    const recorded = Object.entries(opened.headers).map(([name, value]) => [name.toLowerCase(), value])
    expect(Object.fromEntries(request.headers)).toEqual(Object.fromEntries(recorded))
  })

  it('has a new id each time, or the recorded one', () => {
    const id = (keepId: boolean) => signedRequest(opened, { keepId }).headers.get('x-github-delivery')
    expect(new Set([id(false), id(false), id(true)]).size).toBe(3)
    expect(id(true)).toBe(opened.delivery)
  })

  it('changes fields, then signs', async () => {
    const set = { 'issue.labels[0].name': 'bug', 'repository.full_name': 'octo/demo', 'sender.new': [1] }
    const { body, signature } = await seen(signedRequest(opened, { set }))
    const payload: unknown = JSON.parse(body.toString())
    expect(payload).toMatchObject({
      issue: { labels: [{ name: 'bug' }] },
      repository: { full_name: 'octo/demo' },
      sender: { new: [1] },
    })
    expect(await new Webhooks({ secret: TEST_SECRET }).verify(body.toString(), signature)).toBe(true)
  })

  it.each(['signature', 'body'] as const)('corrupts the %s', async (tamper) => {
    const { body, signature } = await seen(signedRequest(opened, { tamper }))
    expect(await new Webhooks({ secret: TEST_SECRET }).verify(body.toString(), signature)).toBe(false)
  })

  it.each([
    ['', "Cannot set '': not a path like pull_request.labels[0].name"],
    ['a..b', "Cannot set 'a..b': not a path like pull_request.labels[0].name"],
    ['action.x', 'Cannot set a field: action is neither an object nor a list'],
  ])('says why %j cannot be set', (path, message) => {
    expect(() => signedRequest(opened, { set: { [path]: 1 } })).toThrow(message)
  })

  it('is accepted by a fetch-style application, also for a handwritten fixture', async () => {
    const app = new Hono()
    app.post('/hooks', async (c) => c.json([c.req.header('x-github-event'), await c.req.json()]))
    const written: Fixture = {
      relay: 1,
      provider: 'github',
      event: 'ping',
      delivery: '1',
      headers: {},
      payload: { zen: 'é' },
    }
    const answer = await app.request(signedRequest(written, { url: 'http://app.test/hooks' }))
    expect(await answer.json()).toEqual(['ping', { zen: 'é' }])
  })
})
