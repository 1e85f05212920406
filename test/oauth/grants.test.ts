import { describe, expect, it } from 'vitest'
import { Secret } from '../../src/base/secret.js'
import {
  ACCESS_TOKEN,
  answerJson,
  answerText,
  CLIENT_ID,
  CLIENT_SECRET,
} from '../helpers/authorization-server.js'
import { createRig, result, type Rig } from './rig.js'

const GOOD = { access_token: ACCESS_TOKEN, token_type: 'bearer' }

describe('a token endpoint that refuses', () => {
  it.each([200, 400, 401])('an unknown code, with status %i', async (status) => {
    await using rig = await createRig()
    rig.server.refusalStatus = status
    const { approved } = await rig.begin()
    approved.set('code', 'forged')
    expect(await failed(rig, approved)).toEqual([
      'exchange_failed',
      'the provider answered bad_verification_code',
    ])
    expect(rig.server.refused).toBe('bad_verification_code')
  })

  it.each([200, 400])('a wrong PKCE verifier, with status %i', async (status) => {
    await using rig = await createRig()
    rig.server.refusalStatus = status
    const { approved, state } = await rig.begin()
    const key = `oauth-state:${state}`
    const kept = await rig.parts.store.get(key)
    await rig.parts.store.put(key, { ...Object(kept), verifier: 'A'.repeat(43) })
    expect(await failed(rig, approved)).toEqual(['exchange_failed', 'the provider answered invalid_grant'])
  })

  it.each([
    [{ id: CLIENT_ID, secret: new Secret('wrong') }, 'invalid_client'],
    [{ id: 'another', secret: new Secret(CLIENT_SECRET) }, 'invalid_client'],
  ])('a client it does not know', async (client, error) => {
    await using rig = await createRig({ client })
    const { approved } = await rig.begin()
    expect(await failed(rig, approved)).toEqual(['exchange_failed', `the provider answered ${error}`])
  })

  it.each([
    ['access_denied', 'access_denied'],
    ['temporarily_unavailable', 'provider_unavailable'],
    ['unauthorized_client', 'exchange_failed'],
  ])('with %s, however it says so', async (error, reason) => {
    for (const status of [200, 400]) {
      await using rig = await createRig()
      rig.server.misbehave = answerJson(status, { error })
      const { approved } = await rig.begin()
      expect(await failed(rig, approved)).toEqual([reason, `the provider answered ${error}`])
    }
  })

  it('with an error that quotes the secret, which relay does not repeat', async () => {
    await using rig = await createRig()
    rig.server.misbehave = answerJson(400, { error: CLIENT_SECRET, error_description: ACCESS_TOKEN })
    const { approved } = await rig.begin()
    expect(await failed(rig, approved)).toEqual(['exchange_failed', 'the provider gave an unknown error'])
  })

  it('with a challenge', async () => {
    await using rig = await createRig()
    rig.server.misbehave = (response) =>
      response
        .writeHead(401, { 'www-authenticate': 'Basic realm="x"', 'content-type': 'application/json' })
        .end('{}')
    const { approved } = await rig.begin()
    expect(await failed(rig, approved)).toEqual(['exchange_failed', expect.any(String)])
  })
})

describe('a token endpoint that breaks', () => {
  it.each([500, 502, 503])('with status %i', async (status) => {
    await using rig = await createRig()
    rig.server.misbehave = answerJson(status, GOOD)
    const { approved } = await rig.begin()
    expect(await failed(rig, approved)).toEqual([
      'provider_unavailable',
      `the token endpoint answered ${status}`,
    ])
  })

  it.each([
    ['HTML', answerText(200, '<html>')],
    ['HTML with a client error', answerText(404, '<html>')],
    [
      'a form, as GitHub does unless asked',
      answerText(200, `access_token=${ACCESS_TOKEN}`, 'application/x-www-form-urlencoded'),
    ],
    ['half of JSON', answerText(200, JSON.stringify(GOOD).slice(0, -5), 'application/json')],
    ['nothing', answerText(200, '', 'application/json')],
  ])('and answers %s', async (_, misbehave) => {
    await using rig = await createRig()
    rig.server.misbehave = misbehave
    const { approved } = await rig.begin()
    expect(await failed(rig, approved)).toEqual([
      'provider_unavailable',
      'the response of the token endpoint is not JSON',
    ])
  })

  it('and resets the connection', async () => {
    await using rig = await createRig()
    rig.server.misbehave = (response) => response.socket?.resetAndDestroy()
    const { approved } = await rig.begin()
    expect(await failed(rig, approved)).toEqual(['provider_unavailable', expect.any(String)])
    expect(rig.server.requests).toHaveLength(1)
  })

  it('and resets the connection in the middle of the answer', async () => {
    await using rig = await createRig()
    rig.server.misbehave = (response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': 1000 })
      response.write('{"access_token":"', () => response.socket?.resetAndDestroy())
    }
    const { approved } = await rig.begin()
    expect(await failed(rig, approved)).toEqual(['provider_unavailable', expect.any(String)])
  })

  it('and cannot be reached', async () => {
    await using rig = await createRig()
    const { approved } = await rig.begin()
    await rig.server[Symbol.asyncDispose]()
    expect(await failed(rig, approved)).toEqual([
      'provider_unavailable',
      'the token endpoint could not be reached (connection refused)',
    ])
  })

  it('and never answers', async () => {
    await using rig = await createRig({ exchangeTimeout: 50 })
    rig.server.misbehave = () => {}
    const { approved } = await rig.begin()
    expect(await failed(rig, approved)).toEqual([
      'provider_unavailable',
      'the token endpoint did not answer in time',
    ])
  })

  it('and never ends its answer', async () => {
    await using rig = await createRig({ exchangeTimeout: 50 })
    rig.server.misbehave = (response) => response.writeHead(200).write('{')
    const { approved } = await rig.begin()
    expect(await failed(rig, approved)).toEqual([
      'provider_unavailable',
      'the token endpoint did not answer in time',
    ])
  })

  it('and never stops sending, which relay cuts off', async () => {
    await using rig = await createRig()
    let sent = 0
    const closed = new Promise<void>((resolve) => {
      rig.server.misbehave = (response) => {
        const more = (error?: unknown): void => {
          sent += 16_384
          if (!error && !response.destroyed) response.write(' '.repeat(16_384), more)
        }
        response.on('close', resolve).writeHead(200, { 'content-type': 'application/json' })
        more()
      }
    })
    const { approved } = await rig.begin()
    expect(await failed(rig, approved)).toEqual([
      'provider_unavailable',
      'the token endpoint answered more than 65536 bytes',
    ])
    await closed
    expect(sent).toBeLessThan(10_000_000)
  })

  it('and breaks the protocol', async () => {
    const answers = [
      [],
      'text',
      {},
      { error: '' },
      { ...GOOD, access_token: '' },
      { ...GOOD, access_token: 7 },
      { ...GOOD, access_token: 'two words' },
      { ...GOOD, access_token: 'line\nbreak' },
      { ...GOOD, access_token: 'x'.repeat(8193) },
      { ...GOOD, token_type: 'mac' },
      { access_token: ACCESS_TOKEN },
      { ...GOOD, expires_in: -1 },
      { ...GOOD, expires_in: 'soon' },
      { ...GOOD, refresh_token: 7 },
      { ...GOOD, scope: 7 },
    ]
    for (const answer of answers) {
      await using rig = await createRig()
      rig.server.misbehave = answerJson(200, answer)
      const { approved } = await rig.begin()
      expect(await failed(rig, approved)).toEqual(['exchange_failed', expect.any(String)])
    }
  })

  it.each([201, 204, 302, 307])(
    'and responds with status %i, which relay does not follow',
    async (status) => {
      await using rig = await createRig()
      rig.server.misbehave = (response) => response.writeHead(status, { location: rig.server.url }).end()
      const { approved } = await rig.begin()
      expect(await failed(rig, approved)).toEqual(['exchange_failed', expect.any(String)])
      expect(rig.server.requests).toHaveLength(1)
    },
  )

  it('is not called when it is neither https nor on this machine', async () => {
    const called: unknown[] = []
    const oauth = {
      authorizationEndpoint: 'http://code.test/authorize',
      tokenEndpoint: 'http://code.test/token',
      issuer: undefined,
      scopes: [],
    }
    await using rig = await createRig({
      provider: { name: 'gitea', origin: 'http://code.test', oauth },
      sendOnce: (url) => {
        called.push(url)
        return Promise.reject(new Error('called'))
      },
    })
    const { approved } = await rig.begin()
    expect(await failed(rig, approved)).toEqual(['exchange_failed', expect.any(String)])
    expect(called).toEqual([])
  })
})

/** Reason and log text of a failed sign-in, which leaves nothing in the store. */
async function failed(rig: Rig, query: URLSearchParams): Promise<string[]> {
  const { outcome, store } = await result(rig, query)
  expect(store).toEqual({})
  expect(rig.log.lines).toHaveLength(1)
  const [, reason = '', why = ''] = /^warn Sign-in failed: (\w+): (.*)$/.exec(rig.log.lines[0] ?? '') ?? []
  expect(outcome).toEqual({ auth: 'error', reason })
  return [reason, why]
}
