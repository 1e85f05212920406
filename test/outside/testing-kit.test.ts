import { isUtf8 } from 'node:buffer'
import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { Webhooks } from '@octokit/webhooks'
import * as fc from 'fast-check'
import { Hono } from 'hono'
import { describe, expect, it } from 'vitest'
import {
  type Fixture,
  loadFixture,
  loadFixtures,
  signedRequest,
  startSandbox,
  TEST_SECRET,
} from 'webhook-relay/testing'
import { sign } from '../kit/delivery.js'
import { emptyFolder } from '../kit/folder.js'
import { receiver, valuesOf } from '../kit/receiver.js'

const FILE = 'fixtures/github/issues.opened.json'
const opened = await loadFixture(FILE)
const all = [...(await loadFixtures('fixtures/github')), ...(await loadFixtures('fixtures/gitea'))]

describe('loadFixture', () => {
  it.each([
    ['a path', FILE],
    ['a URL', pathToFileURL(FILE)],
    ['the name of one that comes with relay', `webhook-relay/${FILE}`],
  ])('reads %s', async (_, file) => {
    expect(await loadFixture(file)).toEqual(JSON.parse(readFileSync(FILE, 'utf8')))
  })

  it('reads a bare payload as the given event and provider', async () => {
    const file = path.join(emptyFolder(), 'payload.json')
    writeFileSync(file, '{ "zen": "é" }\r\n')
    const fixture = await loadFixture(file, { event: 'ping', provider: 'gitea' })
    expect(fixture).toMatchObject({ provider: 'gitea', event: 'ping', body: '{ "zen": "é" }\r\n' })
  })

  it('names file, line and field of an error', async () => {
    const file = path.join(emptyFolder(), 'wrong.json')
    writeFileSync(file, '{\n  "relay": 1,\n  "boddy": ""\n}\n')
    await expect(loadFixture(file)).rejects.toThrow(`${file}, line `)
    const none = loadFixture('webhook-relay/fixtures/github/none.json')
    await expect(none).rejects.toThrow('fixtures/github/none.json: no such file or folder')
  })

  it('refuses a folder, and names the function that reads it', async () => {
    const message = 'fixtures/gitea is a folder. Use loadFixtures to read it'
    await expect(loadFixture('fixtures/gitea')).rejects.toMatchObject({ kind: 'usage', message })
  })
})

describe('loadFixtures', () => {
  it('reads a folder sorted by name', async () => {
    const all = await loadFixtures('webhook-relay/fixtures/gitea')
    const names = all.map(({ name }) => path.basename(name))
    expect(names).toEqual(names.toSorted())
    expect(all.map(({ fixture }) => fixture)).toContainEqual(await loadFixture('fixtures/gitea/push.json'))
  })

  it('refuses a folder without fixtures', async () => {
    await expect(loadFixtures(emptyFolder())).rejects.toThrow('has no fixtures')
  })
})

/** What an application gets to see. */
async function seen(request: Request) {
  const body = Buffer.from(await request.clone().arrayBuffer())
  return { body, signature: request.headers.get('x-hub-signature-256') ?? '' }
}

describe('signedRequest', () => {
  it.each(all)('$name: exact bytes with any secret', async ({ fixture }) => {
    const recorded = Buffer.from(fixture.body ?? '')
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
    const secrets = fc.string({ minLength: 1 })
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 300 }), secrets, secrets, async (bytes, other, secret) => {
        const buffer = Buffer.from(bytes)
        const sent = isUtf8(bytes) ? { body: buffer.toString() } : { bodyBase64: buffer.toString('base64') }
        const headers = { 'X-Hub-Signature-256': sign(other, bytes) }
        const fixture: Fixture = {
          relay: 1,
          provider: 'github',
          event: 'push',
          delivery: '1',
          headers,
          ...sent,
        }
        const { body, signature } = await seen(signedRequest(fixture, { secret }))
        expect(body.equals(bytes)).toBe(true)
        expect(signature).toBe(sign(secret, bytes))
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
    const set = { 'issue.labels[0].name': 'bug', 'repository.full_name': 'octo/demo', sender: { new: [1] } }
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
    const written = { relay: 1, provider: 'github', event: 'ping', delivery: '1', headers: {} } as const
    const request = signedRequest({ ...written, payload: { zen: 'é' } }, { url: 'http://app.test/hooks' })
    const answer = await app.request(request)
    expect(await answer.json()).toEqual(['ping', { zen: 'é' }])
  })
})

function comment(url: string, token: string): Promise<Response> {
  return fetch(`${url}/api/v3/repos/octo/demo/issues/1/comments`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${token}` },
    body: JSON.stringify({ body: 'hello' }),
  })
}

describe('startSandbox', () => {
  it('issues tokens for its API and shows what they were used for', async () => {
    await using sandbox = await startSandbox()
    expect((await comment(sandbox.url, await sandbox.token())).status).toBe(201)
    expect(sandbox.comments).toMatchObject([{ repo: 'octo/demo', issueNumber: 1, body: 'hello' }])
    const { requests } = sandbox
    expect(requests.at(-1)).toEqual({ method: 'POST', path: '/api/v3/repos/octo/demo/issues/1/comments' })
  })

  it('sends signed webhooks', async () => {
    let url = ''
    await using sandbox = await startSandbox({ webhook: () => url })
    await using app = await receiver()
    url = `${app.url}/hooks`
    await comment(sandbox.url, await sandbox.token())
    await sandbox.idle()
    const [handed] = app.received
    if (!handed) throw new Error('none was sent')
    expect([handed.path, ...valuesOf(handed, 'x-github-event')]).toEqual(['/hooks', 'issue_comment'])
    const [signature] = valuesOf(handed, 'x-hub-signature-256')
    expect(signature).toBe(sign(TEST_SECRET, handed.body))
  })

  it('fails with the faults that are set', async () => {
    await using sandbox = await startSandbox()
    const token = await sandbox.token()
    sandbox.faults.next('comment', '502')
    const statuses = [await comment(sandbox.url, token), await comment(sandbox.url, token)]
    expect(statuses.map(({ status }) => status)).toEqual([502, 201])
    sandbox.faults.next('token', '502')
    await expect(sandbox.token()).rejects.toMatchObject({ kind: 'unauthenticated' })
  })

  it('uses the given application, whose tokens expire', async () => {
    const client = { id: 'mine', secret: 'also mine' }
    await using sandbox = await startSandbox({ client, lifetimes: { access: 0, refresh: 60 } })
    expect((await comment(sandbox.url, await sandbox.token())).status).toBe(401)
  })
})
