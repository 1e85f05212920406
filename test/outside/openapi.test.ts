import { createHmac } from 'node:crypto'
import { compileErrors, validate } from '@readme/openapi-parser'
import { startRelay, type TestRelay } from 'webhook-relay/testing'
import { beforeAll, describe, expect, it } from 'vitest'
import packageJson from '../../package.json' with { type: 'json' }
import { type DeliveryOptions, githubDelivery, SECRET, sign } from '../kit/delivery.js'
import { connect, type Connection, exchange, refusedByParser, requestText } from '../kit/http.js'
import { beginSignIn, consent } from '../kit/pages.js'
import { faulty, place, USER } from '../kit/place.js'
import { Contract, differences, DOCUMENT, readDocument, type Route } from './contract.js'
import { shared } from './fixture.js'

/** What relay answers and the contract leaves out: a middleware, the calls of relay's own commands, and the inspector. */
const LEFT_OUT = new Set(['/*', '/instance', '/inspect', '/inspect/*'])
/** What the document promises and this file does not see. */
const NOT_SEEN = [
  // A defect.
  'components/responses/InternalError',
  'components/responses/InternalError: Internal error',
  // Between listening and opening the data; home-and-health.test.ts and test/rooms/serve.test.ts are quick enough.
  'components/responses/NotStarted',
  'components/responses/NotStarted: relay is stopping',
  'components/responses/NotStored: relay is stopping',
  'paths//ready/get/responses/503: relay is starting',
]

const storage = faulty()
const relay = shared(() =>
  startRelay({
    secret: SECRET,
    sources: {
      shop: 'hmac header=X-Signature prefix=sha256= event=X-Event',
      slack: 'slack',
      door: 'none',
      ...Object.fromEntries(
        ['dropbox', 'meta', 'event-grid'].map((name) => [name, `hmac header=X-Signature handshake=${name}`]),
      ),
    },
    settings: { metrics: true },
    seams: { storage },
  }),
)
const contract = new Contract()

interface Ask {
  readonly headers?: Readonly<Record<string, string | null>>
  /** As latin1. */
  readonly body?: string
  readonly port?: number
}

const portOf = (url: string): number => Number(new URL(url).port)

/** Sends a request, and compares the answer with the document. Gives its status, its error and its Location. */
async function ask(method: string, path: string, { headers, body, port = portOf(relay.url) }: Ask = {}) {
  const answer = await exchange(port, requestText(method, path, headers, body))
  const request = { method, path, ...(body !== undefined && { body }) }
  expect(contract.problems(request, answer), `${method} ${path}: ${answer.status} ${answer.body}`).toEqual([])
  const { error }: { error?: string } = answer.body.startsWith('{') ? JSON.parse(answer.body) : {}
  return [answer.status, ...(error === undefined ? [] : [error])]
}

/** The answer to a request whose body was ended to make room for others, once its last byte arrives. */
async function ended(connection: Connection | undefined, path: string) {
  connection?.send('a')
  const answer = await connection?.answer()
  if (!answer) throw new Error('nothing was sent')
  expect(contract.problems({ method: 'POST', path }, answer)).toEqual([])
  return [answer.status, answer.body]
}

function deliver(options: DeliveryOptions = {}, more: Readonly<Record<string, string>> = {}) {
  const { headers, body } = githubDelivery(options)
  const lines = headers.map(([name, value]) => [name, value])
  return ask('POST', '/webhook', {
    headers: { ...Object.fromEntries(lines), ...more },
    body: body.toString('latin1'),
  })
}

describe('the document', () => {
  it('is valid OpenAPI, and of this version', async () => {
    const result = await validate(DOCUMENT)
    expect(result.valid ? result.warnings : compileErrors(result)).toEqual([])
    expect(readDocument().info.version).toBe(packageJson.version)
  })

  const routesOf = ({ relay: { app } }: TestRelay): Route[] =>
    app.routes.filter(({ path }) => !LEFT_OUT.has(path))

  it('has every route of the application, and no other', () => {
    expect(differences(contract.document, routesOf(relay))).toEqual({ undocumented: [], unserved: [] })
  })

  it('would not pass without one of them, nor with another', () => {
    const routes = routesOf(relay)
    const { paths } = contract.document
    for (const path of Object.keys(paths)) {
      const { [path]: removed, ...others } = paths
      const lacking = differences({ ...contract.document, paths: others }, routes)
      expect([path, lacking]).toEqual([
        path,
        { undocumented: expect.arrayContaining([expect.any(String)]), unserved: [] },
      ])
      const added = { ...paths, [`${path}/more`]: removed ?? {} }
      const { unserved } = differences({ ...contract.document, paths: added }, routes)
      expect(unserved).toEqual(Object.keys(removed ?? {}).map((each) => `${each.toUpperCase()} ${path}/more`))
    }
    const more = [...routes, { method: 'PUT', path: '/health' }]
    expect(differences(contract.document, more)).toEqual({ undocumented: ['PUT /health'], unserved: [] })
  })
})

describe('real answers are as the document says:', () => {
  it('pages and probes', async () => {
    for (const query of ['', '?auth=success', '?auth=error&reason=access_denied'])
      expect(await ask('GET', `/${query}`)).toEqual([200])
    expect(await ask('GET', '/health')).toEqual([200])
    expect(
      await ask('GET', '/health', { headers: { 'X-Relay-Challenge': 'q83vASNFZ4mrze8BI0VniQ' } }),
    ).toEqual([200])
    expect(await ask('GET', '/metrics')).toEqual([200])
    expect(await ask('GET', '/metrics', { headers: { 'X-Forwarded-Host': 'a.example' } })).toEqual([
      403,
      'Forbidden host',
    ])
  })

  it('deliveries of the code host', async () => {
    expect(await deliver({ id: 'first' })).toEqual([200])
    expect(await deliver({ id: 'first' })).toEqual([200])
    expect(await deliver({ secret: 'another' })).toEqual([401, 'Invalid signature'])
    expect(await deliver({ body: '{' })).toEqual([400, 'Invalid event'])
    expect(await deliver({ event: '~' })).toEqual([400, 'Invalid event'])
    expect(await deliver({ body: 'x'.repeat(1_048_577) })).toEqual([413, 'Request too large'])
    storage.now('fails')
    expect(await deliver()).toEqual([503, 'Delivery could not be stored'])
    storage.now('works')
  })

  it('deliveries of sources', async () => {
    const body = '{"a":1}'
    const shop = (headers: Ask['headers'], sent = body) =>
      ask('POST', '/webhook/shop', { headers: headers ?? {}, body: sent })
    const signed = { 'X-Signature': sign(SECRET, body), 'X-Event': 'made' }
    expect(await shop(signed)).toEqual([200])
    expect(await shop({})).toEqual([401, 'Invalid signature'])
    expect(await shop({ ...signed, 'X-Event': '~' })).toEqual([400, 'Invalid event'])
    expect(await shop(signed, 'x'.repeat(1_048_577))).toEqual([413, 'Request too large'])
    const question = '{"type":"url_verification","challenge":"abc"}'
    const time = String(Math.floor(Date.now() / 1000))
    const digest = createHmac('sha256', SECRET).update(`v0:${time}:${question}`).digest('hex')
    const slack = { 'X-Slack-Signature': `v0=${digest}`, 'X-Slack-Request-Timestamp': time }
    expect(await ask('POST', '/webhook/slack', { headers: slack, body: question })).toEqual([200])
    expect(await ask('GET', '/webhook/dropbox?challenge=abc')).toEqual([200])
    expect(await ask('GET', '/webhook/dropbox?challenge=%3C')).toEqual([400, 'Invalid challenge'])
    const hub = '/webhook/meta?hub.mode=subscribe&hub.challenge=1&hub.verify_token=x'
    expect(await ask('GET', hub)).toEqual([403, 'Wrong verify token'])
    expect(await ask('GET', hub, { headers: { Host: 'a.example' } })).toEqual([403, 'Forbidden host'])
    const origin = { headers: { 'WebHook-Request-Origin': 'eventgrid.azure.net' } }
    expect(await ask('OPTIONS', '/webhook/event-grid', origin)).toEqual([200])
    const fromPage = { headers: { Origin: 'https://page.example' }, body }
    expect(await ask('POST', '/webhook/door', { body })).toEqual([200])
    const untrusted = 'Deliveries that nothing proves are not taken from a browser'
    expect(await ask('POST', '/webhook/door', fromPage)).toEqual([403, untrusted])
    expect(await ask('POST', '/webhook/nowhere', { body })).toEqual([404, 'Not found'])
    storage.now('fails')
    expect(await shop({ ...signed, 'X-Event': 'other' })).toEqual([503, 'Delivery could not be stored'])
    storage.now('works')
  })

  it('signing in', async () => {
    const start = (query: string, headers = {}) => ask('GET', `/auth/provider${query}`, { headers })
    for (const name of ['provider', 'sandbox'])
      expect(await ask('GET', `/auth/${name}?userId=ada`)).toEqual([302])
    expect(await start('')).toEqual([400, 'Missing userId'])
    expect(await start('?userId=a&userId=b')).toEqual([400, 'Invalid userId'])
    expect(await start('?userId=ada&login=short')).toEqual([400, 'Invalid login'])
    const asPicture = { 'Sec-Fetch-Dest': 'image' }
    expect(await start('?userId=ada', asPicture)).toEqual([
      403,
      'Sign-in starts by opening this address in a browser',
    ])
    expect(await ask('GET', '/auth/github?userId=ada')).toEqual([404, 'Not found'])
    expect(await ask('GET', '/auth/github/callback')).toEqual([404, 'Not found'])
    expect(await ask('GET', '/auth/provider/callback')).toEqual([302])
    await using busy = await startRelay({})
    const begin = () => ask('GET', '/auth/provider?userId=ada', { port: portOf(busy.url) })
    let last = await begin()
    for (let i = 0; i < 1_000 && last[0] === 302; i++) last = await begin()
    expect(last).toEqual([429, 'Too many sign-ins begin at once. Try again in a moment'])
    const begun = await beginSignIn(`${relay.url}/auth/sandbox?userId=ada`)
    const back = new URL(await consent(begun.authorize))
    const headers = { Cookie: begun.cookie }
    expect(await ask('GET', back.pathname + back.search, { headers })).toEqual([302])
    expect(await ask('DELETE', '/auth/token/ada')).toEqual([200])
    for (const wrong of ['', '%2F'])
      expect(await ask('DELETE', `/auth/token/${wrong}`)).toEqual([400, 'Invalid userId'])
    await relay.signIn('ada')
    storage.now('fails')
    expect(await start('?userId=ada')).toEqual([503, 'no room'])
    expect(await ask('DELETE', '/auth/token/ada')).toEqual([503, 'no room'])
    storage.now('works')
  })

  it('what is wrong with any request', async () => {
    const bad = { headers: { Host: null } }
    const foreign = { headers: { Host: 'evil.example' } }
    const long = { headers: { 'X-Long': 'a'.repeat(16_384) } }
    await using slow = await startRelay({ seams: { limits: { headers: 100, request: 200 } } })
    for (const [path, methods] of Object.entries(contract.document.paths))
      for (const each of Object.keys(methods)) {
        const method = each.toUpperCase()
        const one = path.replaceAll(/\{provider\}/g, 'provider').replaceAll(/\{\w+\}/g, 'shop')
        expect(await ask(method, one, bad)).toEqual([400, 'Bad request'])
        expect(await ask(method, one, foreign)).toEqual([403, 'Forbidden host'])
        expect(await ask(method, one, long)).toEqual([431, 'Request header fields too large'])
      }
    // Others do not wait for a body.
    for (const path of ['/webhook', '/webhook/nowhere'])
      expect(
        await ask('POST', path, { headers: { 'Content-Length': '10' }, port: portOf(slow.url) }),
      ).toEqual([408, 'Request timeout'])
    for (const { request, status } of refusedByParser('/webhook')) {
      const answer = await exchange(portOf(relay.url), request)
      expect([answer.status, contract.problems({ method: 'POST', path: '/webhook' }, answer)]).toEqual([
        status,
        [],
      ])
    }
    const unknown = await exchange(portOf(relay.url), requestText('GET', '/nowhere'))
    expect(contract.answerProblems('/components/responses/NotFound', unknown)).toEqual([])
    for (const path of ['/webhook', '/metrics', '/auth/token/ada', '/api/merge']) {
      const refused = await exchange(portOf(relay.url), requestText('PATCH', path))
      expect([
        refused.status,
        contract.answerProblems('/components/responses/MethodNotAllowed', refused),
      ]).toEqual([405, []])
    }
  })

  it('too many bodies', async () => {
    // With 63 of the largest bodies, and what Node holds besides, there is no room in 64 MiB for one more: the first is ended.
    const port = portOf(relay.url)
    const held = []
    for (let i = 0; i < 63; i++) {
      const connection = await connect(port)
      held.push(connection)
      connection.send(requestText('POST', '/webhook', { 'Content-Length': '1048576' }))
      await new Promise((resolve) => connection.socket.write(Buffer.alloc(1_048_575), resolve))
    }
    await exchange(port, requestText('GET', '/health'))
    expect(await deliver({ body: JSON.stringify('x'.repeat(1_048_574)) })).toEqual([200])
    expect(await ended(held[0], '/webhook')).toEqual([503, '{"error":"Too many request bodies at once"}'])
    for (const { socket } of held) socket.destroy()
  })

  it('what is not set up', async () => {
    await using bare = await place({ host: 'none' })
    const { port } = await bare.serve()
    expect(await ask('GET', '/metrics', { port })).toEqual([404, 'Not found'])
    const none = 'Sign-in is not configured: set RELAY_CLIENT_ID and RELAY_CLIENT_SECRET'
    expect(await ask('GET', '/auth/provider?userId=ada', { port })).toEqual([503, none])
  })
})

describe('real answers of the actions are as the document says:', () => {
  const DEMO = { owner: 'octo', repo: 'demo' }
  const HELLO = { ...DEMO, issueNumber: 1, body: 'hello' }
  const none = 'The sandbox refused: Not Found (no such repository or number, or no access to it)'
  let token: string
  beforeAll(async () => {
    token = await relay.signIn(USER)
  })

  const act = (path: string, body: object | string, headers: Record<string, string> = {}, port?: number) =>
    ask('POST', `/api/${path}`, {
      headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json', ...headers },
      body: typeof body === 'string' ? body : JSON.stringify(body),
      ...(port !== undefined && { port }),
    })

  it('done', async () => {
    const sha = relay.sandbox.issue('octo/demo', 5)?.pull?.head.sha
    expect(await act('comment', HELLO)).toEqual([200])
    expect(await act('react', { ...DEMO, issueNumber: 1, content: 'eyes' })).toEqual([200])
    expect(await act('merge', { ...DEMO, pullNumber: 2 })).toEqual([200])
    const words = { title: 'T', message: 'M' }
    expect(await act('merge', { ...DEMO, pullNumber: 5, method: 'squash', sha, ...words })).toEqual([200])
  })

  const valid: readonly (readonly [string, object])[] = [
    ['comment', HELLO],
    ['merge', { ...DEMO, pullNumber: 5 }],
    ['react', { ...DEMO, issueNumber: 1, content: 'eyes' }],
  ]
  it.each(valid)('refused before the code host is asked: %s', async (path, body) => {
    expect(await act(path, body, { Authorization: '' })).toEqual([401, 'Missing bearer token'])
    expect(await act(path, body, { Authorization: 'Bearer x' })).toEqual([401, 'Invalid or expired token'])
    expect(await act(path, body, { 'Content-Type': 'text/plain' })).toEqual([
      415,
      'Content-Type must be application/json',
    ])
    expect(await act(path, 'x'.repeat(1_048_577))).toEqual([413, 'Request too large'])
    const bad = [
      ['{', 'not valid JSON'],
      [{ ...body, more: 1 }, 'more: unknown field'],
      [{ ...body, repo: '..' }, 'repo: must be 1 to 100 of A-Z a-z 0-9 . _ - and not . or ..'],
    ] as const
    for (const [sent, why] of bad) expect(await act(path, sent)).toEqual([400, `Invalid request: ${why}`])
  })

  it('refused for what a field holds', async () => {
    const whole = 'must be a positive whole number'
    expect(await act('comment', { ...HELLO, body: ' ' })).toEqual([
      400,
      'Invalid request: body: must not be blank',
    ])
    expect(await act('comment', { ...HELLO, issueNumber: 2 ** 53 })).toEqual([
      400,
      `Invalid request: issueNumber: ${whole}`,
    ])
    const both = { ...DEMO, issueNumber: 1, content: 'eyes', commentId: 1, reviewCommentId: 1 }
    expect(await act('react', both)).toEqual([
      400,
      'Invalid request: reviewCommentId: not together with commentId',
    ])
    expect(await act('merge', { ...DEMO, pullNumber: 5, sha: 'abc' })).toEqual([
      400,
      'Invalid request: sha: must be a whole commit id of 40 or 64 hexadecimal digits',
    ])
  })

  it('refused by the code host', async () => {
    const rows: readonly (readonly [string, object, number])[] = [
      ['comment', { issueNumber: 4 }, 403],
      ['comment', { repo: 'no-issues' }, 410],
      ['comment', { body: 'x'.repeat(65_537) }, 422],
      ['comment', { repo: 'fault-rate-limit' }, 429],
      ['comment', { repo: 'fault-502' }, 502],
    ]
    for (const [path, change, status] of rows)
      expect(await act(path, { ...HELLO, ...change })).toContain(status)
    expect(await act('comment', { ...HELLO, issueNumber: 99 })).toEqual([404, none])
    expect(await act('merge', { ...DEMO, pullNumber: 3 })).toContain(409)
    expect(await act('merge', { ...DEMO, pullNumber: 5, sha: '0'.repeat(40) })).toContain(409)
  })

  it('too late', async () => {
    await using impatient = await startRelay({ seams: { limits: { codeHost: 500 } } })
    const Authorization = `Bearer ${await impatient.signIn()}`
    const slow = { ...HELLO, repo: 'fault-slow' }
    expect(await act('comment', slow, { Authorization }, portOf(impatient.url))).toContain(504)
  })

  it('refused while many bodies are read', async () => {
    await using busy = await startRelay({})
    const port = portOf(busy.url)
    const Authorization = `Bearer ${await busy.signIn()}`
    const held: Connection[] = []
    const hold = async (path: string, size: number, headers = {}): Promise<void> => {
      const connection = await connect(port)
      held.push(connection)
      connection.send(requestText('POST', path, { 'Content-Length': String(size), ...headers }))
      await new Promise((resolve) => connection.socket.write(Buffer.alloc(size - 1), resolve))
      await exchange(port, requestText('GET', '/health'))
    }
    // The first is as large as the others, and older.
    const all = { Authorization, 'Content-Type': 'application/json' }
    for (let i = 0; i < 65; i++) await hold('/api/comment', 1_048_576, all)
    expect(await ended(held[0], '/api/comment')).toEqual([503, '{"error":"Too many request bodies at once"}'])
    for (const { socket } of held) socket.destroy()
  })
})

describe('at the end', () => {
  it('GET /ready is as the document says', async () => {
    const ill = faulty()
    await using stopping = await startRelay({ seams: { storage: ill } })
    const port = portOf(stopping.url)
    const ready = () => ask('GET', '/ready', { port })
    expect(await ready()).toEqual([200])
    ill.now('fails')
    await expect.poll(ready).toEqual([503, 'Deliveries cannot be stored'])
    ill.now('works')
    const stopped = stopping[Symbol.asyncDispose]()
    await expect.poll(ready).toEqual([503, 'relay is stopping'])
    await stopped
  })

  it('nothing that the document promises is left that no answer was', () => {
    expect(contract.unseen().toSorted()).toEqual(NOT_SEEN.toSorted())
  })
})
