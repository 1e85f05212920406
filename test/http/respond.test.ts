import { describe, expect, it } from 'vitest'
import { RelayError } from '../../src/base/errors.js'
import { errorResponse } from '../../src/http/respond.js'
import { recordingLog } from './edge.js'

async function answerTo(thrown: unknown, headers?: Record<string, string>) {
  const { log, lines } = recordingLog()
  const response = errorResponse(thrown, log, headers)
  return {
    status: response.status,
    headers: Object.fromEntries(response.headers),
    body: await response.text(),
    lines,
  }
}

const type = { 'content-type': 'application/json' }

describe('an expected failure', () => {
  it('is its message and its status, and is not logged', async () => {
    expect(await answerTo(new RelayError('invalid_signature', 'Invalid signature'))).toEqual({
      status: 401,
      headers: type,
      body: '{"error":"Invalid signature"}',
      lines: [],
    })
  })

  it('asks for a bearer token where one is wanted', async () => {
    expect(await answerTo(new RelayError('unauthenticated', 'Missing bearer token'))).toEqual({
      status: 401,
      headers: { ...type, 'www-authenticate': 'Bearer realm="relay"' },
      body: '{"error":"Missing bearer token"}',
      lines: [],
    })
  })

  it('says when to come back', async () => {
    expect(await answerTo(new RelayError('rate_limited', 'Too many', { retryAfter: 60 }))).toEqual({
      status: 429,
      headers: { ...type, 'retry-after': '60' },
      body: '{"error":"Too many"}',
      lines: [],
    })
  })

  it('of the provider’s is a warning, without its cause', async () => {
    const error = new RelayError('provider_failed', 'GitHub failed', { cause: new Error('a secret') })
    expect(await answerTo(error)).toEqual({
      status: 502,
      headers: type,
      body: '{"error":"GitHub failed"}',
      lines: ['warn a request was answered 502: GitHub failed'],
    })
  })

  it('of the store’s says in the log why', async () => {
    const cause = new RelayError('storage', 'The store could not be written: no room')
    const error = new RelayError('storage', 'Delivery could not be stored', { cause })
    expect(await answerTo(error)).toEqual({
      status: 503,
      headers: type,
      body: '{"error":"Delivery could not be stored"}',
      lines: [
        `error a request was answered 503: Delivery could not be stored (${cause.message}): ${String(cause)}`,
      ],
    })
  })

  it('carries further headers', async () => {
    expect(
      await answerTo(new RelayError('method_not_allowed', 'Method not allowed'), { Allow: 'GET' }),
    ).toEqual({
      status: 405,
      headers: { ...type, allow: 'GET' },
      body: '{"error":"Method not allowed"}',
      lines: [],
    })
  })
})

describe('anything else', () => {
  it.each([[new TypeError('a secret')], ['a secret'], [undefined], [404]])(
    'is an internal error, its text for the log alone: %s',
    async (thrown) => {
      expect(await answerTo(thrown)).toEqual({
        status: 500,
        headers: type,
        body: '{"error":"Internal error"}',
        lines: [`error a request was answered 500: Internal error: ${String(thrown)}`],
      })
    },
  )

  it('is not logged when the client went away', async () => {
    const { lines } = await answerTo(new RelayError('cancelled', 'The client went away'))
    expect(lines).toEqual([])
  })
})
