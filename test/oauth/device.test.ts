import { describe, expect, it } from 'vitest'
import { beginDeviceSignIn, type DeviceParts } from '../../src/oauth/device.js'
import { createProvider } from '../../src/providers/open.js'
import { type Answer, type Received, scriptedServer } from '../helpers/scripted-server.js'

const CODES = {
  device_code: 'device-code-canary',
  user_code: 'WDJB-MJHT',
  verification_uri: 'https://github.com/login/device',
  expires_in: 900,
  interval: 5,
}
const error = (name: string, status = 200): Answer => ({
  status,
  body: { error: name, error_description: 'no' },
})
const GRANTED: Answer = { body: { access_token: 'gho_x', token_type: 'bearer', scope: 'repo,gist' } }
const PENDING = error('authorization_pending')

/** A sign-in whose polls are answered in this order, in made-up time. */
async function signIn(
  polls: readonly (Answer | (() => Answer))[],
  { codes = { body: CODES }, ...more }: { readonly codes?: Answer } & Partial<DeviceParts> = {},
) {
  const answers = [...polls]
  await using server = await scriptedServer(({ path }) => {
    if (path === '/login/device/code') return codes
    const answer = answers.shift() ?? PENDING
    return typeof answer === 'function' ? answer() : answer
  })
  let now = 0
  const waits: number[] = []
  const parts: DeviceParts = {
    provider: createProvider({ name: 'github', url: server.url }),
    clientId: 'the-client',
    exchangeTimeout: 200,
    clock: () => now,
    async wait(ms, options) {
      options?.signal?.throwIfAborted()
      now += ms
      waits.push(ms / 1000)
    },
    ...more,
  }
  const run = async () => {
    const begun = await beginDeviceSignIn(parts)
    return { begun, response: await begun.awaitToken() }
  }
  const ended = await run().catch((thrown: unknown) => ({ thrown }))
  const forms = server.received.map(({ path, body, headers }: Received) => ({
    path,
    accept: headers.accept,
    form: Object.fromEntries(new URLSearchParams(body)),
  }))
  return { ended, waits, forms, url: server.url }
}

describe('the device flow', () => {
  it('asks for codes and polls at the interval, without a client secret', async () => {
    const { ended, waits, forms } = await signIn([PENDING, PENDING, GRANTED])
    expect(ended).toEqual({
      begun: {
        userCode: 'WDJB-MJHT',
        address: 'https://github.com/login/device',
        lifetime: 900_000,
        awaitToken: expect.any(Function),
      },
      response: {
        accessToken: 'gho_x',
        expiresIn: undefined,
        refreshToken: undefined,
        refreshExpiresIn: undefined,
        scopes: ['repo', 'gist'],
      },
    })
    expect(waits).toEqual([5, 5, 5])
    const poll = {
      path: '/login/oauth/access_token',
      accept: 'application/json',
      form: {
        client_id: 'the-client',
        device_code: 'device-code-canary',
        grant_type: 'urn:ietf:params:oauth:grant-type:device_code',
      },
    }
    expect(forms).toEqual([
      {
        path: '/login/device/code',
        accept: 'application/json',
        form: { client_id: 'the-client', scope: 'repo' },
      },
      poll,
      poll,
      poll,
    ])
  })

  it('slows down by 5 s for good, each time it is asked to (RFC 8628 section 3.5)', async () => {
    const { waits } = await signIn([error('slow_down'), PENDING, error('slow_down', 400), PENDING, GRANTED])
    expect(waits).toEqual([5, 10, 10, 15, 15])
  })

  it('polls on, more slowly, when an answer is lost', async () => {
    const bad: Answer = { status: 502, body: '<html>' }
    const { ended, waits } = await signIn(['reset', bad, 'silence', GRANTED])
    expect(ended).toMatchObject({ response: { accessToken: 'gho_x' } })
    expect(waits).toEqual([5, 10, 20, 40])
  })

  it.each([
    [{ ...CODES, interval: undefined }, 5],
    [{ ...CODES, interval: 0.01 }, 1],
    [{ ...CODES, interval: 9_999 }, 60],
  ])('takes no interval that makes no sense: %j', async (body, first) => {
    expect((await signIn([GRANTED], { codes: { body } })).waits).toEqual([first])
  })

  it('ends with the code, also if the code host never says so', async () => {
    const { ended, waits } = await signIn([], { codes: { body: { ...CODES, expires_in: 12 } } })
    expect(ended).toMatchObject({
      thrown: {
        kind: 'timed_out',
        message: 'The code was not entered within 12s. Run relay login again for a new one',
      },
    })
    expect(waits).toEqual([5, 5, 2])
  })

  it.each([
    [
      error('expired_token'),
      'timed_out',
      'The code was not entered within 15m. Run relay login again for a new one',
    ],
    [error('access_denied'), 'unauthenticated', 'Signing in at URL failed: access was denied there'],
    [
      error('incorrect_device_code', 400),
      'provider_failed',
      'Signing in at URL failed (the provider answered incorrect_device_code). Check RELAY_CLIENT_ID',
    ],
    [
      error('incorrect_client_credentials'),
      'not_configured',
      'Signing in at URL failed (the provider answered incorrect_client_credentials). Check RELAY_CLIENT_ID',
    ],
    [
      { body: { token_type: 'bearer' } },
      'provider_failed',
      'Signing in at URL failed: the token endpoint gave no token (OAUTH_INVALID_RESPONSE)',
    ],
  ] as const)('ends at %j', async (answer, kind, message) => {
    const { ended, url, waits } = await signIn([PENDING, answer])
    expect(ended).toMatchObject({ thrown: { kind, message: message.replace('URL', url) } })
    expect(waits).toHaveLength(2)
  })

  it.each<[string, Answer, string, string]>([
    [
      'the app does not allow it',
      error('device_flow_disabled', 400),
      'not_configured',
      "Signing in at URL failed: the OAuth app the-client does not allow the device flow. Enable it in the app's settings there, or use relay login --with-token",
    ],
    [
      'the app is unknown',
      error('Not Found', 404),
      'provider_failed',
      'Signing in at URL failed (the provider gave an unknown error). Check RELAY_CLIENT_ID',
    ],
    [
      'the server fails',
      { status: 503 },
      'provider_failed',
      'Signing in at URL failed: the token endpoint answered 503',
    ],
    [
      'nothing answers',
      'silence',
      'provider_timeout',
      'Signing in at URL failed: the token endpoint did not answer in time',
    ],
    [
      'the address is no address',
      { body: { ...CODES, verification_uri: 'javascript:alert(1)' } },
      'provider_failed',
      'URL gave an address or a code that is not usable',
    ],
    [
      'the code is too long to enter',
      { body: { ...CODES, user_code: 'x'.repeat(65) } },
      'provider_failed',
      'URL gave an address or a code that is not usable',
    ],
  ])('does not begin when %s', async (_, codes, kind, message) => {
    const { ended, url, forms } = await signIn([], { codes })
    expect(ended).toMatchObject({ thrown: { kind, message: message.replace('URL', url) } })
    expect(forms).toHaveLength(1)
  })

  it('is given up at each step, with the reason', async () => {
    const reason = new Error('Ctrl-C')
    const first = await signIn([], { signal: AbortSignal.abort(reason) })
    expect([first.ended, first.forms]).toEqual([{ thrown: reason }, []])
    const controller = new AbortController()
    const wait: DeviceParts['wait'] = async (_, options) => {
      controller.abort(reason)
      options?.signal?.throwIfAborted()
    }
    expect((await signIn([], { signal: controller.signal, wait })).ended).toEqual({ thrown: reason })
    const later = new AbortController()
    const silent = (): Answer => {
      later.abort(reason)
      return 'silence'
    }
    const during = await signIn([silent], { signal: later.signal, exchangeTimeout: 10_000 })
    expect(during.ended).toEqual({ thrown: reason })
  })
})
