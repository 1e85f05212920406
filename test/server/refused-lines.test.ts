import { once } from 'node:events'
import { request as httpRequest } from 'node:http'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Secret } from '../../src/base/secret.js'
import { DEFAULTS, NO_ROUTES, type Settings } from '../../src/base/settings.js'
import { type Listener, listen } from '../../src/http/listen.js'
import { createRelay, type Relay } from '../../src/relay.js'
import { type DeliveryOptions, githubDelivery, post, SECRET } from '../helpers/delivery.js'
import { recordingLog } from '../helpers/log.js'

const settings: Settings = {
  profile: 'test',
  folder: '',
  provider: 'github',
  providerUrl: 'https://github.com',
  webhookSecrets: { current: new Secret(SECRET) },
  host: '127.0.0.1',
  port: 0,
  allowedHosts: [],
  store: 'memory',
  maxBody: DEFAULTS.maxBody,
  tokenTtl: DEFAULTS.tokenTtl,
  routes: NO_ROUTES,
  concurrency: 1,
  onDuplicate: 'if-failed',
  keep: DEFAULTS.keep,
  keepMax: DEFAULTS.keepMax,
}

let log: ReturnType<typeof recordingLog>
let relay: Relay
let listener: Listener

beforeEach(async () => {
  log = recordingLog()
  relay = await createRelay(settings, { log: log.log })
  listener = await listen(relay.app.fetch, { ...settings, log: log.log })
})

afterEach(async () => {
  await listener.close()
  await relay[Symbol.asyncDispose]()
})

const CLAIM = '(unproved: event push, delivery d-1; relay show refused:1)'
const deliver = (path: string, options: DeliveryOptions = {}) =>
  post(`${listener.url}${path}`, githubDelivery({ id: 'd-1', ...options }))
const answer = (status: number, error: string) => ({
  status,
  type: 'application/json',
  body: JSON.stringify({ error }),
})

describe('the line about a delivery that is too large', () => {
  const TOO_LARGE = answer(413, 'Request too large')

  it('has its size, the limit, what to do, and the identity that it claims', async () => {
    expect(await deliver('/webhook', { body: 'x'.repeat(2_600_000) })).toEqual(TOO_LARGE)
    expect(log.lines).toEqual([
      `warn POST /webhook was answered 413: Request too large: 2,600,000 bytes, the limit is 1,048,576 bytes. Raise --max-body, then redeliver it at the code host ${CLAIM}`,
    ])
  })

  it('has the limit where no size was announced', async () => {
    const request = httpRequest(`${listener.url}/webhook`, { method: 'POST' })
    for (let i = 0; i < 3; i++) request.write(Buffer.alloc(500_000))
    request.end()
    const [{ statusCode }] = await once(request, 'response')
    expect(statusCode).toBe(413)
    expect(log.lines).toEqual([
      'warn POST /webhook was answered 413: Request too large: over 1,048,576 bytes, the limit is 1,048,576 bytes. Raise --max-body, then redeliver it at the code host (unproved: event (none), delivery (none); relay show refused:1)',
    ])
  })
})

describe('the line about a delivery that was sent elsewhere', () => {
  it.each([
    ['/', 405, 'Method not allowed'],
    ['/webhook/', 404, 'Not found'],
    ['/hooks', 404, 'Not found'],
  ])('names the right path: %s', async (path, status, error) => {
    expect(await deliver(path)).toEqual(answer(status, error))
    expect(log.lines).toEqual([
      `warn POST ${path} was answered ${status}: ${error}: it looks like a delivery: the payload URL of the webhook must end in /webhook ${CLAIM}`,
    ])
  })

  it('also helps for a webhook without a secret, and for nothing else', async () => {
    expect((await deliver('/a', { set: { 'X-Hub-Signature-256': undefined } })).status).toBe(404)
    expect(log.lines.splice(0)).toHaveLength(1)
    const plain = { 'X-Hub-Signature-256': undefined, 'X-GitHub-Event': undefined }
    expect((await deliver('/b', { set: plain })).status).toBe(404)
    expect((await fetch(`${listener.url}/c`, { headers: { 'X-GitHub-Event': 'push' } })).status).toBe(404)
    expect(log.lines).toEqual([])
  })
})

describe('the line about a delivery that is malformed', () => {
  it.each<[why: string, options: DeliveryOptions, claim?: string]>([
    ['the body is not JSON', { body: 'not JSON' }],
    ['the body is not a form with a payload', { body: 'a=b', type: 'application/x-www-form-urlencoded' }],
    [
      'the header x-github-delivery is missing, repeated or malformed',
      { set: { 'X-GitHub-Delivery': ['d-1', 'd-2'] } },
      '(unproved: event push, delivery "d-1"; relay show refused:1)',
    ],
  ])('names the reason: %s', async (why, options, claim = CLAIM) => {
    expect(await deliver('/webhook', options)).toEqual(answer(400, 'Invalid event'))
    expect(log.lines).toEqual([`warn POST /webhook was answered 400: Invalid event: ${why} ${claim}`])
  })
})
