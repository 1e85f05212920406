import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Sandbox } from '../../src/sandbox/sandbox.js'
import { answerOf, CLIENT, json, NOW, start } from './sandbox-rig.js'

const JSON_TYPE = { accept: 'application/json' }
const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code'

interface Codes {
  readonly device_code: string
  readonly user_code: string
  readonly verification_uri: string
}

let now: number
let sandbox: Sandbox
beforeEach(async () => {
  now = NOW
  sandbox = await start({ clock: () => now })
})
afterEach(() => sandbox[Symbol.asyncDispose]())

const post = (path: string, fields: Record<string, string>, headers = {}): Promise<Response> =>
  fetch(sandbox.url + path, { method: 'POST', body: new URLSearchParams(fields), headers })
const requestCodes = (scope = 'repo'): Promise<Codes> =>
  json<Codes>(post('/login/device/code', { client_id: CLIENT.id, scope }, JSON_TYPE))
/** Polls without a client secret, as a device does. */
const poll = ({ device_code }: Pick<Codes, 'device_code'>, changes: Record<string, string> = {}) =>
  json<Record<string, unknown>>(
    post(
      '/login/oauth/access_token',
      { client_id: CLIENT.id, device_code, grant_type: DEVICE_GRANT, ...changes },
      JSON_TYPE,
    ),
  )
const failure = (error: string) => ({
  error,
  error_description: expect.any(String),
  error_uri: expect.stringMatching(/^https:\/\/docs\.github\.com\//),
})

describe('the device flow', () => {
  it('slows down a device that polls too often, by 5 seconds each time', async () => {
    const codes = await requestCodes()
    await poll(codes)
    now += 4999
    expect(await poll(codes)).toEqual({ ...failure('slow_down'), interval: 10 })
    now += 9999
    expect(await poll(codes)).toEqual({ ...failure('slow_down'), interval: 15 })
    now += 15_000
    expect(await poll(codes)).toEqual(failure('authorization_pending'))
  })

  it('ends after 15 minutes', async () => {
    const codes = await requestCodes()
    now += 899_999
    expect(await poll(codes)).toEqual(failure('authorization_pending'))
    now += 1
    expect(await poll(codes)).toEqual(failure('expired_token'))
    expect((await post('/login/device', { user_code: codes.user_code })).status).toBe(422)
  })

  it('refuses another device code, another client and another client’s device code', async () => {
    const codes = await requestCodes()
    expect(await poll({ device_code: 'other' })).toEqual(failure('incorrect_device_code'))
    expect(await poll(codes, { client_id: 'other' })).toEqual(failure('incorrect_client_credentials'))
    const unknown = await post('/login/device/code', { client_id: 'other' }, JSON_TYPE)
    expect(await answerOf(unknown)).toEqual({ status: 404, body: { error: 'Not Found' } })
  })
})
