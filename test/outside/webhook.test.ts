import { Agent } from 'node:http'
import { describe, expect, it } from 'vitest'
import { type DeliveryOptions, giteaDelivery, githubDelivery, post, SECRET } from '../kit/delivery.js'
import { entriesOf, linesOf } from '../kit/journal.js'
import { readMetrics } from '../kit/metrics.js'
import { faulty, place } from '../kit/place.js'
import { fresh, json, shared } from './fixture.js'

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
const UPPER_CASE = `sha256=${PUBLISHED.slice(7).toUpperCase()}`
const NO_NAMES = { 'X-GitHub-Event': undefined, 'X-GitHub-Delivery': undefined }
const nested = (depth: number): string => '['.repeat(depth) + ']'.repeat(depth)
const padded = (length: number): string => `"${'x'.repeat(length - 2)}"`
const signature = (value: string | string[] | undefined): DeliveryOptions => ({
  set: { 'X-Hub-Signature-256': value },
})

const here = shared(() => place({ host: 'none' }))
const relay = shared(() => here.serve('--metrics'))
/** Of a test's own. */
const own = fresh(() => place({ host: 'none' }))

/** How many deliveries this relay has stored. */
async function stored(): Promise<number> {
  const metrics = await readMetrics(relay.address)
  return metrics['relay_deliveries_total']?.values['result=stored via=http'] ?? 0
}

describe('POST /webhook', () => {
  it.each<[string, typeof OK, DeliveryOptions]>([
    ['a signed delivery', OK, {}],
    ['a ping', OK, { event: 'ping' }],
    [
      'the generic header names',
      OK,
      { set: { ...NO_NAMES, 'X-Provider-Event': 'x', 'X-Provider-Delivery': 'd' } },
    ],
    ['a form', OK, { body: form('{"a":"é + & %"}'), type: FORM }],
    ['a lone scalar', OK, { body: 'null' }],
    ['nesting of 1,000', OK, { body: nested(1000) }],
    ['one byte more than the limit, badly signed', TOO_LARGE, { body: padded(1_048_577), secret: 'other' }],
    ['no signature', BAD_SIGNATURE, signature(undefined)],
    ['two signatures', BAD_SIGNATURE, { body: 'Hello, World!', ...signature([PUBLISHED, PUBLISHED]) }],
    ['a short signature', BAD_SIGNATURE, signature(PUBLISHED.slice(0, -1))],
    ['a long signature', BAD_SIGNATURE, signature(`${PUBLISHED}0`)],
    ['an upper-case signature', BAD_SIGNATURE, { body: 'Hello, World!', ...signature(UPPER_CASE) }],
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
    ['no headers of its own', BAD_SIGNATURE, { set: { ...NO_NAMES, 'X-Hub-Signature-256': undefined } }],
    ['trailing bytes', BAD_EVENT, { body: '{}\0' }],
    ['a byte order mark', BAD_EVENT, { body: '\ufeff{}' }],
    ['invalid UTF-8', BAD_EVENT, { body: Uint8Array.of(0x22, 0xc3, 0x28, 0x22) }],
    ['nesting of 1,001', BAD_EVENT, { body: nested(1001) }],
    ['an empty body', BAD_EVENT, { body: '' }],
    ['a form without payload', BAD_EVENT, { body: 'a=1', type: FORM }],
    ['a form with two payloads', BAD_EVENT, { body: 'payload={}&payload={}', type: FORM }],
  ])('answers %s, and keeps working', async (_, answer, options) => {
    const before = await stored()
    using agent = kept()
    expect(await post(`${relay.address}/webhook`, githubDelivery(options), agent)).toEqual(answer)
    expect((await stored()) - before).toBe(answer === OK ? 1 : 0)
    expect(await post(`${relay.address}/webhook`, githubDelivery(), agent)).toEqual(OK)
  })

  it('sends the same headers with 200 and 401', async () => {
    for (const secret of [SECRET, 'other']) {
      const { headers, body } = githubDelivery({ secret })
      const init = { method: 'POST', headers: headers.map(([...line]) => line), body: new Uint8Array(body) }
      const response = await fetch(`${relay.address}/webhook`, init)
      const text = await response.text()
      expect(Object.fromEntries(response.headers)).toEqual({
        connection: 'keep-alive',
        'content-length': String(text.length),
        'content-type': 'application/json',
        date: expect.any(String),
        'keep-alive': 'timeout=620',
        'x-request-id': expect.stringMatching(/^[0-9a-f-]{36}$/),
      })
    }
  })

  it('stores the bytes and header lines that were sent', async () => {
    const serving = await own.serve()
    const credentials = { Authorization: 'Bearer x', Cookie: 'a=b', 'Proxy-Authorization': 'x' }
    const request = githubDelivery({
      body: '{"action":"opened", "n":12345678901234567890}',
      event: 'issues',
      id: 'i-1',
      set: { 'x-ODD': ['one', 'tw\u00f6'], ...credentials },
    })
    await post(`${serving.address}/webhook`, request)
    const { headers, body, ...delivery } = await json(own.run('show', '1', '--json'))
    const of = { event: 'issues', delivery: 'i-1', hook: '42', action: 'opened', repo: null, number: null }
    expect(delivery).toMatchObject({ n: 1, provider: 'github', ...of, verifiedBy: 'current', duplicates: 0 })
    expect(headers.map(({ name, value }: Record<string, string>) => [name, value])).toEqual([
      ['Host', new URL(serving.address).host],
      ...request.headers.filter(([name]) => !/^(authorization|cookie|proxy-)/i.test(name)),
      ['Content-Length', '45'],
      ['Connection', 'keep-alive'],
    ])
    expect(body).toBe(request.body.toString())
    expect((await own.run('show', '1', '--body')).out).toBe(request.body.toString())
  })

  it('accepts the previous secret while rotating', async () => {
    const env = { RELAY_WEBHOOK_SECRET: 'new', RELAY_WEBHOOK_SECRET_PREVIOUS: SECRET }
    const serving = await own.serveWith({ env })
    const send = (secret: string) => serving.deliver({ secret })
    expect(await send('new')).toEqual(OK)
    expect(await send(SECRET)).toEqual(OK)
    expect(await send('older')).toEqual(BAD_SIGNATURE)
    expect((await linesOf(own)).map(({ verifiedBy }) => verifiedBy)).toEqual(['current', 'previous'])
  })

  it('accepts JSON and forms from Gitea, signed over the JSON', async () => {
    const env = { RELAY_PROVIDER: 'gitea', RELAY_PROVIDER_URL: 'https://gitea.example' }
    const address = `${(await own.serveWith({ env })).address}/webhook`
    const requests = [
      giteaDelivery({ body: GITEA_JSON }),
      giteaDelivery({ body: form(GITEA_JSON), signed: GITEA_JSON, type: FORM }),
    ]
    for (const request of requests) expect(await post(address, request)).toEqual(OK)
    const wrong = giteaDelivery({ body: form(GITEA_JSON), type: FORM })
    expect(await post(address, wrong)).toEqual(BAD_SIGNATURE)
    expect(await post(address, githubDelivery())).toEqual(BAD_EVENT)
    expect((await entriesOf(own)).map(({ line, body }) => [line['action'], body])).toEqual(
      requests.map(({ body }) => ['opened', body]),
    )
  })
})

it('refuses a signature of which one digit differs, whichever it is', async () => {
  const serving = await own.serve()
  const digits = PUBLISHED.slice(7)
  for (let at = 0; at < digits.length; at++) {
    const other = digits[at] === '0' ? '1' : '0'
    const changed = `sha256=${digits.slice(0, at)}${other}${digits.slice(at + 1)}`
    const answer = await serving.deliver({ body: 'Hello, World!', ...signature(changed) })
    expect([at, answer]).toEqual([at, BAD_SIGNATURE])
  }
})

describe('a delivery that comes again', () => {
  it('is answered as before and stored once, also from another hook', async () => {
    const serving = await own.serve()
    for (const hook of ['1', '1', '2']) expect(await serving.deliver({ id: 'same', hook })).toEqual(OK)
    await serving.stop()
    expect(await linesOf(own)).toHaveLength(1)
    expect(await json(own.run('show', '1', '--json'))).toMatchObject({ hook: '1', duplicates: 2 })
  })

  it('at the same time is stored once', async () => {
    const serving = await own.serve()
    const request = githubDelivery()
    const sent = Array.from({ length: 20 }, () => post(`${serving.address}/webhook`, request))
    expect(await Promise.all(sent)).toEqual(sent.map(() => OK))
    await serving.stop()
    expect((await linesOf(own)).map(({ duplicates }) => duplicates)).toEqual([19])
  })
})

describe('a delivery', () => {
  it('is answered 503 when it cannot be stored, and is stored when it comes again', async () => {
    const storage = faulty()
    const serving = await own.serveWith({ seams: { storage } })
    const request = githubDelivery()
    const send = () => post(`${serving.address}/webhook`, request)
    storage.now('fails')
    expect(await Promise.all([send(), send()])).toEqual([NOT_STORED, NOT_STORED])
    expect(await linesOf(own)).toEqual([])
    expect(await (await fetch(`${serving.address}/health`)).text()).toBe('{"status":"ok"}')
    storage.now('works')
    expect(await send()).toEqual(OK)
    await serving.stop()
    expect((await linesOf(own)).map(({ n, duplicates }) => [n, duplicates])).toEqual([[1, 0]])
  })
})

/** Connections that are used again, so that unread bytes of one request would break the next. */
function kept(maxSockets = 1): Agent & Disposable {
  const agent = new Agent({ keepAlive: true, maxSockets })
  return Object.assign(agent, { [Symbol.dispose]: () => agent.destroy() })
}
