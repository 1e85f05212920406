import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { githubDelivery } from '../kit/delivery.js'
import {
  type BrokenRequest,
  connect,
  exchange,
  halfClosed,
  type RawAnswer,
  refusedByParser,
  refusedForHost,
  requestText,
  silent,
} from '../kit/http.js'
import { type Place, place, type Serving } from '../kit/place.js'

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
const HEALTH = requestText('GET', '/health')
const OK = { status: 200, type: 'application/json', body: '{"status":"ok"}', id: true }
const CONNECT = 'CONNECT example.org:443 HTTP/1.1\r\nHost: localhost\r\n\r\n'
const MIB = 1_048_576

/** The parts of an answer that tests compare, and whether its request id is well-formed. */
function essence({ status, headers, body }: RawAnswer) {
  return { status, type: headers['content-type'], body, id: UUID.test(headers['x-request-id'] ?? '') }
}

function failure(status: number, error: string) {
  return { status, type: 'application/json', body: JSON.stringify({ error }), id: true }
}

/** The warnings and errors on standard error. */
function warnings({ err }: Serving): readonly string[] {
  return err.match(/.*(?:warning|error):.*/g) ?? []
}

/** What a relay answers to a valid delivery, and of what it has warned. */
async function served(relay: Serving) {
  const { status } = await relay.deliver()
  return { status, warnings: warnings(relay) }
}

const SERVED = { status: 200, warnings: [] }

let here: Place
let relay: Serving
let port: number
beforeAll(async () => {
  here = await place({ host: 'none' })
  relay = await here.serve()
  port = relay.port
})
afterAll(() => here[Symbol.asyncDispose]())

describe('a request that the HTTP parser refuses', () => {
  it.each(refusedByParser('/webhook'))('$name', async ({ request, status, error }) => {
    using connection = await connect(port)
    connection.send(request)
    const answer = await connection.answer()
    expect(essence(answer)).toEqual(failure(status, error))
    expect(answer.headers['connection']).toBe('close')
    expect(await connection.closed()).toBe('')
    expect(await served(relay)).toEqual(SERVED)
  })

  it('is answered when it ends early', async () => {
    using connection = await connect(port)
    connection.socket.end('GET /health HTTP/1.1\r\nHost: loc')
    expect(essence(await connection.answer())).toEqual(failure(400, 'Bad request'))
    expect(await connection.closed()).toBe('')
  })

  it('is answered after an earlier request on the same connection', async () => {
    using connection = await connect(port)
    connection.send(HEALTH)
    expect(essence(await connection.answer())).toEqual(OK)
    connection.send('broken\r\n\r\n')
    expect(essence(await connection.answer())).toEqual(failure(400, 'Bad request'))
    expect(await connection.closed()).toBe('')
  })

  it('closes the connection when it comes together with an earlier one', async () => {
    using connection = await connect(port)
    connection.send(`${HEALTH}broken\r\n\r\n`)
    expect(essence(await connection.answer())).toEqual(OK)
    await connection.closed()
    expect(await served(relay)).toEqual(SERVED)
  })
})

describe('a request that is not finished in time', () => {
  it.each(silent('/webhook'))('$name, then silence: $status', async ({ request, status, error }) => {
    await using own = await place({ host: 'none' })
    const serving = await own.serveWith({ seams: { limits: { headers: 200, request: 400 } } })
    using connection = await connect(serving.port)
    connection.send(request)
    const answer = await connection.answer()
    expect(essence(answer)).toEqual(failure(status, error))
    expect(answer.headers['connection']).toBe('close')
    await connection.closed()
    expect(await served(serving)).toEqual(SERVED)
  })

  it('is forgotten when its client disconnects', async () => {
    for (const { request } of silent('/webhook')) {
      using connection = await connect(port)
      connection.send(request)
      connection.socket.resetAndDestroy()
      expect(await served(relay)).toEqual(SERVED)
    }
  })
})

describe('requests the parser lets through', () => {
  it.each(refusedForHost('/webhook'))('$name', async ({ request, status, error }: BrokenRequest) => {
    expect(essence(await exchange(port, request))).toEqual(failure(status, error))
    expect(await served(relay)).toEqual(SERVED)
  })

  const odd: Record<string, [request: string, expected: ReturnType<typeof essence>]> = {
    'a path that is no path': [requestText('GET', 'health'), failure(400, 'Bad request')],
    'OPTIONS *': [requestText('OPTIONS', '*'), failure(400, 'Bad request')],
    'an offer to upgrade': [
      requestText('GET', '/health', { Connection: 'Upgrade', Upgrade: 'websocket' }),
      OK,
    ],
    'an unknown expectation': [requestText('GET', '/health', { Expect: 'wonders' }), OK],
    'an unknown path': [requestText('GET', '/nowhere'), failure(404, 'Not found')],
    'a bad percent escape': [requestText('GET', '/%zz'), failure(404, 'Not found')],
  }

  it.each(Object.entries(odd))('%s', async (_name, [request, expected]) => {
    expect(essence(await exchange(port, request))).toEqual(expected)
    expect(await served(relay)).toEqual(SERVED)
  })

  it('get an id each', async () => {
    using connection = await connect(port)
    connection.send(HEALTH + requestText('GET', '/nowhere') + requestText('POST', '/health'))
    const ids = [await connection.answer(), await connection.answer(), await connection.answer()].map(
      ({ headers }) => headers['x-request-id'],
    )
    expect(new Set(ids).size).toBe(3)
    expect(ids).toEqual([
      expect.stringMatching(UUID),
      expect.stringMatching(UUID),
      expect.stringMatching(UUID),
    ])
  })
})

describe('CONNECT', () => {
  it('is refused and closed at once, whatever bytes follow', async () => {
    using connection = await connect(port)
    connection.send(CONNECT)
    connection.send(Buffer.alloc(4 * MIB))
    const { status, body } = await connection.answer()
    connection.socket.end()
    expect({ status, body, more: await connection.closed() }).toEqual({
      status: 400,
      body: '{"error":"Bad request"}',
      more: '',
    })
  })
})

describe('an offer to upgrade', () => {
  it('is ignored, also with a body', async () => {
    using connection = await connect(port)
    const { headers, body } = githubDelivery()
    const offer = { ...Object.fromEntries(headers), Connection: 'Upgrade', Upgrade: 'websocket' }
    connection.send(requestText('POST', '/webhook', offer, body.toString()))
    expect(await connection.answer()).toMatchObject({ status: 200, body: '{"ok":true}' })
    connection.send(HEALTH)
    expect(essence(await connection.answer())).toEqual(OK)
  })
})

describe('a client that ends its side after the request', () => {
  it('reads its answer, also to a body that breaks off', async () => {
    const half = requestText('POST', '/webhook', { 'Content-Length': '9' }, 'abc')
    expect(await halfClosed(port, half)).toContain('Bad request')
  })

  it('reads the answers to all its requests', async () => {
    const answers = await halfClosed(port, HEALTH.repeat(3))
    expect(answers.match(/\{"status":"ok"\}/g)).toHaveLength(3)
  })
})

describe('a client that sends requests and reads no responses', () => {
  it('gets the answers to 16 in a row', async () => {
    using connection = await connect(port)
    connection.send(HEALTH.repeat(16))
    for (let n = 0; n < 16; n++) expect(essence(await connection.answer())).toEqual(OK)
  })
})
