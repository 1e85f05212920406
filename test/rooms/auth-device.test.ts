import { expect, it } from 'vitest'
import { anywhere } from '../../src/base/command-line.js'
import { beginDeviceSignIn, type DeviceParts } from '../../src/auth/device.js'
import { openHost } from '../../src/codehost/hosts.js'
import { WEB } from './auth-rig.js'
import { type Answer, type Reply, servers } from './codehost-rig.js'

const CODES = {
  device_code: 'the-device-code',
  user_code: 'WDJB-MJHT',
  verification_uri: 'https://github.com/login/device',
  expires_in: 900,
  interval: 5,
}
const says = (error: string, status = 200): Reply => ({ status, body: { error, error_description: 'no' } })
const GRANTED: Reply = { body: { access_token: 'gho_x', token_type: 'bearer', scope: 'repo,gist' } }
const NO_TOKEN: Reply = { body: { token_type: 'bearer' } }
const PENDING = says('authorization_pending')
const SLOWER = [says('slow_down'), PENDING, says('slow_down', 400), PENDING, GRANTED]
const LOST: Answer[] = ['reset', { status: 502 }, 'hang', GRANTED]
const FINE: Reply = { body: CODES }
const SCRIPT: Reply = { body: { ...CODES, verification_uri: 'javascript:alert(1)' } }
const CHECK_ID = 'Check RELAY_CLIENT_ID'

/** A sign-in whose polls are answered in this order, in made-up time. */
async function signIn(polls: readonly Answer[], codes: Answer) {
  const left = [...polls]
  const { sendOnce } = servers(({ url }) => (url.endsWith('/code') ? codes : (left.shift() ?? PENDING)))
  let now = 0
  const waits: number[] = []
  const parts: DeviceParts = {
    host: await openHost({ name: 'github', url: WEB }),
    command: anywhere,
    client: { id: 'the-client' },
    sendOnce,
    timeLimit: 20,
    clock: () => now,
    async wait(ms) {
      now += ms
      waits.push(ms / 1000)
    },
  }
  const run = async () => (await beginDeviceSignIn(parts)).awaitToken()
  return { ended: await run().catch((thrown: unknown) => ({ thrown })), waits }
}

it.each<[string, readonly Answer[], object, readonly number[]]>([
  ['slows down for good, each time it is asked to', SLOWER, {}, [5, 10, 10, 15, 15]],
  ['doubles its pause when an answer is lost', LOST, {}, [5, 10, 20, 40]],
  ['polls every 5 s where no interval is named', [GRANTED], { interval: undefined }, [5]],
  ['takes no interval below a second', [GRANTED], { interval: 0.01 }, [1]],
  ['takes none over a minute', [GRANTED], { interval: 9_999 }, [60]],
  ['ends with the code, also if nothing says so', [], { expires_in: 12 }, [5, 5, 2]],
])('the device flow %s', async (_, polls, codes, waits) => {
  expect((await signIn(polls, { body: { ...CODES, ...codes } })).waits).toEqual(waits)
})

it.each<[string, Answer, Answer, string, string]>([
  ['expired_token', FINE, says('expired_token'), 'timed_out', 'was not entered within 15m'],
  ['a wrong device code', FINE, says('incorrect_device_code', 400), 'provider_failed', CHECK_ID],
  ['no token', FINE, NO_TOKEN, 'provider_failed', 'endpoint gave no token'],
  ['a wrong client', says('incorrect_client_credentials'), PENDING, 'not_configured', CHECK_ID],
  ['an unknown client', says('Not Found', 404), PENDING, 'provider_failed', CHECK_ID],
  ['503', { status: 503 }, PENDING, 'provider_failed', 'the token endpoint answered 503'],
  ['nothing in time', 'hang', PENDING, 'provider_timeout', 'the token endpoint did not answer in time'],
  ['an address that is none', SCRIPT, PENDING, 'provider_failed', 'an address that is not usable'],
])('the device flow ends at %s', async (_, codes, poll, kind, message) => {
  const { ended } = await signIn([poll], codes)
  expect(ended).toMatchObject({ thrown: { kind, message: expect.stringContaining(message) } })
})
