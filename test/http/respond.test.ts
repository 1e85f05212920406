import { describe, expect, it, vi } from 'vitest'
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
  it('answers with its message and status, and is not logged', async () => {
    expect(await answerTo(new RelayError('invalid_signature', 'Invalid signature'))).toEqual({
      status: 401,
      headers: type,
      body: '{"error":"Invalid signature"}',
      lines: [],
    })
  })

  it('asks for a bearer token where one is required', async () => {
    expect(await answerTo(new RelayError('unauthenticated', 'Missing bearer token'))).toEqual({
      status: 401,
      headers: { ...type, 'www-authenticate': 'Bearer realm="relay"' },
      body: '{"error":"Missing bearer token"}',
      lines: [],
    })
  })

  it('names the time of the next try', async () => {
    expect(await answerTo(new RelayError('rate_limited', 'Too many', { retryAfter: 60 }))).toEqual({
      status: 429,
      headers: { ...type, 'retry-after': '60' },
      body: '{"error":"Too many"}',
      lines: [],
    })
  })

  it('of the provider is logged as a warning, without its cause', async () => {
    const error = new RelayError('provider_failed', 'GitHub failed', { cause: new Error('a secret') })
    expect(await answerTo(error)).toEqual({
      status: 502,
      headers: type,
      body: '{"error":"GitHub failed"}',
      lines: ['warn a request was answered 502: GitHub failed'],
    })
  })

  it('of the store is logged with its reason', async () => {
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

  it('can have more headers', async () => {
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

describe('the line about a failure', () => {
  it('has the detail, which the answer has not, and is then a warning', async () => {
    const error = new RelayError('too_large', 'Request too large', { detail: '2 bytes' })
    expect(await answerTo(error)).toEqual({
      status: 413,
      headers: type,
      body: '{"error":"Request too large"}',
      lines: ['warn a request was answered 413: Request too large: 2 bytes'],
    })
  })

  it('shortens a long path', () => {
    const { log, lines } = recordingLog()
    errorResponse(new RelayError('unavailable', 'Busy'), log, {}, `GET /${'x'.repeat(16_000)}`)
    expect(lines).toEqual([`warn GET /${'x'.repeat(194)}… was answered 503: Busy`])
  })

  it('appears once a second with a count, where many are equal', () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    const { log, lines } = recordingLog()
    for (let second = 1; second <= 5; second++) {
      for (let i = 0; i < 3600; i++)
        errorResponse(new RelayError('unavailable', 'Busy'), log, {}, `GET /${second}/${i}`)
      vi.advanceTimersByTime(1000)
    }
    vi.useRealTimers()
    expect(lines).toEqual([
      'warn GET /1/0 was answered 503: Busy',
      'warn answered 503: Busy … and 3,599 more like it in the last second',
      ...Array(4).fill('warn answered 503: Busy … and 3,600 more like it in the last second'),
    ])
  })

  it('appears for each request that fails unexpectedly', () => {
    const { log, lines } = recordingLog()
    for (const path of ['/a', '/b', '/a']) errorResponse(new Error('a bug'), log, {}, `GET ${path}`)
    expect(lines).toEqual(
      ['/a', '/b'].map((path) => `error GET ${path} was answered 500: Internal error: Error: a bug`),
    )
  })
})

describe('an unexpected error', () => {
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

  it('is not logged when the client disconnected', async () => {
    const { lines } = await answerTo(new RelayError('cancelled', 'The client went away'))
    expect(lines).toEqual([])
  })
})
