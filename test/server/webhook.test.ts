import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { Agent } from 'node:http'
import { connect } from 'node:net'
import { describe, expect, it } from 'vitest'
import { Secret } from '../../src/base/secret.js'
import { openDatabase } from '../../src/store/open.js'
import { breakable } from '../helpers/breakable.js'
import { emptyFolder } from '../helpers/context.js'
import {
  type DeliveryOptions,
  GITEA,
  giteaDelivery,
  githubDelivery,
  post,
  SECRET,
} from '../helpers/delivery.js'
import { startWebhookService } from '../helpers/webhook-service.js'
import { countOf, entriesOf } from '../helpers/journal.js'

const JSON_TYPE = 'application/json'
const OK = { status: 200, type: JSON_TYPE, body: '{"ok":true}' }
const BAD_SIGNATURE = { status: 401, type: JSON_TYPE, body: '{"error":"Invalid signature"}' }
const BAD_EVENT = { status: 400, type: JSON_TYPE, body: '{"error":"Invalid event"}' }
const TOO_LARGE = { status: 413, type: JSON_TYPE, body: '{"error":"Request too large"}' }
const NOT_STORED = { status: 503, type: JSON_TYPE, body: '{"error":"Delivery could not be stored"}' }

const FORM = 'application/x-www-form-urlencoded'
const form = (payload: string): string => new URLSearchParams({ payload }).toString()
const GITEA_JSON = '{\n  "action": "opened",\n  "title": "\\u003cb\\u003e"\n}'

const PUBLISHED = 'sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17'
const nested = (depth: number): string => '['.repeat(depth) + ']'.repeat(depth)
const padded = (length: number): string => `"${'x'.repeat(length - 2)}"`
const signature = (value: string | string[] | undefined): DeliveryOptions => ({
  set: { 'X-Hub-Signature-256': value },
})

describe('POST /webhook', () => {
  it.each<[string, typeof OK, DeliveryOptions]>([
    ['a signed delivery', OK, {}],
    ['a ping', OK, { event: 'ping' }],
    [
      'the generic header names',
      OK,
      {
        set: {
          'X-GitHub-Event': undefined,
          'X-GitHub-Delivery': undefined,
          'X-Provider-Event': 'push',
          'X-Provider-Delivery': 'd-1',
        },
      },
    ],
    ['a form', OK, { body: form('{"a":"é + & %"}'), type: FORM }],
    ['a lone scalar', OK, { body: 'null' }],
    ['nesting of 1,000', OK, { body: nested(1000) }],
    ['exactly the largest body', OK, { body: padded(1_048_576) }],
    ['one byte more', TOO_LARGE, { body: padded(1_048_577) }],
    ['one byte more, badly signed', TOO_LARGE, { body: padded(1_048_577), secret: 'other' }],
    ['no signature', BAD_SIGNATURE, signature(undefined)],
    ['two signatures', BAD_SIGNATURE, { body: 'Hello, World!', ...signature([PUBLISHED, PUBLISHED]) }],
    ['a short signature', BAD_SIGNATURE, signature(PUBLISHED.slice(0, -1))],
    ['a long signature', BAD_SIGNATURE, signature(`${PUBLISHED}0`)],
    [
      'an upper-case signature',
      BAD_SIGNATURE,
      {
        body: 'Hello, World!',
        ...signature(`sha256=${PUBLISHED.slice(7).toUpperCase()}`),
      },
    ],
    ['a SHA-1 signature', BAD_SIGNATURE, signature('sha1=01dc10d0c83e72ed246219cdd91669667fe2ca59')],
    ['an empty digest', BAD_SIGNATURE, signature('sha256=')],
    ['an empty signature', BAD_SIGNATURE, signature('')],
    ['a signature that is not ASCII', BAD_SIGNATURE, signature(`sha256=${'é'.repeat(64)}`)],
    ['the wrong secret', BAD_SIGNATURE, { secret: `${SECRET}\n` }],
    ['an altered byte', BAD_SIGNATURE, { body: '{"a":1}', signed: '{"a":2}' }],
    ['a genuine signature of what is no JSON', BAD_EVENT, { body: 'Hello, World!', ...signature(PUBLISHED) }],
    ['no event header', BAD_EVENT, { set: { 'X-GitHub-Event': undefined } }],
    ['two event headers', BAD_EVENT, { set: { 'X-GitHub-Event': ['push', 'push'] } }],
    ['no delivery header', BAD_EVENT, { set: { 'X-GitHub-Delivery': undefined } }],
    ['two delivery headers', BAD_EVENT, { set: { 'X-GitHub-Delivery': ['a', 'b'] } }],
    [
      'no headers of its own',
      BAD_SIGNATURE,
      {
        set: {
          'X-Hub-Signature-256': undefined,
          'X-GitHub-Event': undefined,
          'X-GitHub-Delivery': undefined,
        },
      },
    ],
    ['trailing bytes', BAD_EVENT, { body: '{}\0' }],
    ['a byte order mark', BAD_EVENT, { body: '\ufeff{}' }],
    ['invalid UTF-8', BAD_EVENT, { body: Uint8Array.of(0x22, 0xc3, 0x28, 0x22) }],
    ['nesting of 1,001', BAD_EVENT, { body: nested(1001) }],
    ['an empty body', BAD_EVENT, { body: '' }],
    ['a form without payload', BAD_EVENT, { body: 'a=1', type: FORM }],
    ['a form with two payloads', BAD_EVENT, { body: 'payload={}&payload={}', type: FORM }],
  ])('answers %s, and keeps working', async (_, answer, options) => {
    await using service = await startWebhookService()
    using agent = kept()
    expect(await post(service.webhook, githubDelivery(options), agent)).toEqual(answer)
    expect(await countOf(service.journal)).toBe(answer === OK ? 1 : 0)
    expect(await post(service.webhook, githubDelivery(), agent)).toEqual(OK)
  })

  it('sends the same headers with 200 and 401', async () => {
    await using service = await startWebhookService()
    for (const secret of [SECRET, 'other']) {
      const { headers, body } = githubDelivery({ secret })
      const init = { method: 'POST', headers: headers.map(([...line]) => line), body: new Uint8Array(body) }
      const response = await fetch(service.webhook, init)
      const text = await response.text()
      expect(Object.fromEntries(response.headers)).toEqual({
        connection: 'keep-alive',
        'content-length': String(text.length),
        'content-type': 'application/json',
        date: expect.any(String),
        'keep-alive': 'timeout=5',
        'x-request-id': expect.stringMatching(/^[0-9a-f-]{36}$/),
      })
    }
  })

  it('forgets a client that disconnects mid-body, and keeps working', async () => {
    await using service = await startWebhookService()
    const { hostname, port } = new URL(service.url)
    const socket = connect(Number(port), hostname)
    socket.write(`POST /webhook HTTP/1.1\r\nHost: ${hostname}\r\nContent-Length: 9\r\n\r\n{"a"`)
    await once(socket, 'connect')
    socket.destroy()
    await once(socket, 'close')
    expect(await post(service.webhook, githubDelivery())).toEqual(OK)
    expect(await countOf(service.journal)).toBe(1)
  })

  it('stores the bytes and header lines that were sent', async () => {
    await using service = await startWebhookService()
    const request = githubDelivery({
      body: '{"action":"opened", "n":12345678901234567890}',
      event: 'issues',
      id: 'i-1',
      set: {
        'x-ODD': ['one', 'tw\u00f6'],
        Authorization: 'Bearer x',
        Cookie: 'a=b',
        'Proxy-Authorization': 'x',
      },
    })
    await post(service.webhook, request)
    expect(await service.journal.read(1)).toEqual({
      n: 1,
      receivedAt: expect.any(Number),
      provider: 'github',
      event: 'issues',
      deliveryId: 'i-1',
      hookId: '42',
      headers: [
        ['Host', new URL(service.url).host],
        ...request.headers.filter(([name]) => !/^(authorization|cookie|proxy-)/i.test(name)),
        ['Content-Length', '45'],
        ['Connection', 'keep-alive'],
      ],
      body: new Uint8Array(request.body),
      verifiedBy: 'current',
      action: 'opened',
      repo: null,
      number: null,
      duplicates: 0,
    })
  })

  it('accepts the previous secret while rotating', async () => {
    const secrets = { current: new Secret('new'), previous: new Secret(SECRET) }
    await using service = await startWebhookService({ secrets })
    expect(await post(service.webhook, githubDelivery({ secret: 'new' }))).toEqual(OK)
    expect(await post(service.webhook, githubDelivery())).toEqual(OK)
    expect(await post(service.webhook, githubDelivery({ secret: 'older' }))).toEqual(BAD_SIGNATURE)
    expect((await entriesOf(service.journal)).map(({ verifiedBy }) => verifiedBy)).toEqual([
      'current',
      'previous',
    ])
  })

  it('accepts JSON and forms from Gitea, signed over the JSON', async () => {
    await using service = await startWebhookService({ provider: GITEA })
    const requests = [
      giteaDelivery({ body: GITEA_JSON }),
      giteaDelivery({ body: form(GITEA_JSON), signed: GITEA_JSON, type: FORM }),
    ]
    for (const request of requests) expect(await post(service.webhook, request)).toEqual(OK)
    const wrong = giteaDelivery({ body: form(GITEA_JSON), type: FORM })
    expect(await post(service.webhook, wrong)).toEqual(BAD_SIGNATURE)
    expect(await post(service.webhook, githubDelivery())).toEqual(BAD_EVENT)
    expect((await entriesOf(service.journal)).map(({ action, body }) => [action, body])).toEqual(
      requests.map(({ body }) => ['opened', new Uint8Array(body)]),
    )
  })

  it('accepts larger bodies with a higher limit', async () => {
    await using service = await startWebhookService({ maxBody: 2_000_000 })
    expect(await post(service.webhook, githubDelivery({ body: padded(2_000_000) }))).toEqual(OK)
    expect(await post(service.webhook, githubDelivery({ body: padded(2_000_001) }))).toEqual(TOO_LARGE)
  })

  it('answers in-process too, where there is no connection', async () => {
    await using service = await startWebhookService()
    const { headers, body } = githubDelivery({ id: 'in-process' })
    const init = { method: 'POST', headers: headers.map(([...line]) => line), body: new Uint8Array(body) }
    const response = await service.app.request('http://localhost/webhook', init)
    expect([response.status, await response.text()]).toEqual([200, OK.body])
    expect(await service.journal.read(1)).toMatchObject({
      deliveryId: 'in-process',
      body: new Uint8Array(body),
    })
  })
})

describe('a delivery that comes again', () => {
  it('is answered as before and stored once; from another hook it is another delivery', async () => {
    await using service = await startWebhookService()
    for (const hook of ['1', '1', '2']) {
      expect(await post(service.webhook, githubDelivery({ id: 'same', hook }))).toEqual(OK)
    }
    await service.journal.flush()
    expect((await entriesOf(service.journal)).map(({ hookId, duplicates }) => [hookId, duplicates])).toEqual([
      ['1', 1],
      ['2', 0],
    ])
  })

  it('at the same time is stored once', async () => {
    await using service = await startWebhookService()
    const request = githubDelivery()
    const answers = await Promise.all(Array.from({ length: 20 }, () => post(service.webhook, request)))
    expect(answers).toEqual(Array.from({ length: 20 }, () => OK))
    await service.journal.flush()
    expect((await entriesOf(service.journal)).map(({ duplicates }) => duplicates)).toEqual([19])
  })
})

describe('a store that fails', () => {
  it('is answered 503, and the delivery is stored when it comes again', async () => {
    const database = breakable(await openDatabase({ kind: 'memory', folder: '' }))
    await using service = await startWebhookService({ database })
    const request = githubDelivery()
    database.now('fails')
    const answers = await Promise.all([post(service.webhook, request), post(service.webhook, request)])
    expect(answers).toEqual([NOT_STORED, NOT_STORED])
    expect(await countOf(service.journal)).toBe(0)
    expect(await (await fetch(`${service.url}/health`)).text()).toBe('{"status":"ok"}')
    database.now('works')
    expect(await post(service.webhook, request)).toEqual(OK)
    expect((await entriesOf(service.journal)).map(({ n, duplicates }) => [n, duplicates])).toEqual([[1, 0]])
  })
})

describe('two thousand deliveries, 32 at a time', () => {
  it('are all stored once', async () => {
    const database = await openDatabase({ kind: 'file', folder: emptyFolder() })
    await using service = await startWebhookService({ database })
    using agent = kept(32)
    const ids = Array.from({ length: 2000 }, () => randomUUID())
    const bodyOf = (id: string): string => `{"id":"${id}"}`
    const answers = await Promise.all(
      ids.map((id) => post(service.webhook, githubDelivery({ id, body: bodyOf(id) }), agent)),
    )
    expect(answers.filter(({ status }) => status !== 200)).toEqual([])
    const stored = await entriesOf(service.journal)
    expect(stored.map(({ n }) => n)).toEqual(ids.map((_, i) => i + 1))
    expect(stored.map(({ deliveryId }) => deliveryId).toSorted()).toEqual(ids.toSorted())
    const altered = stored.filter(
      ({ deliveryId, body }) => Buffer.from(body).toString() !== bodyOf(deliveryId),
    )
    expect(altered).toEqual([])
  })
})

/** Connections that are used again, so that unread bytes of one request would break the next. */
function kept(maxSockets = 1): Agent & Disposable {
  const agent = new Agent({ keepAlive: true, maxSockets })
  return Object.assign(agent, { [Symbol.dispose]: () => agent.destroy() })
}
