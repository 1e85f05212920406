import { assert, asyncProperty, stringMatching } from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Secret } from '../../src/base/secret.js'
import { DEFAULTS, NO_ROUTES, type Settings } from '../../src/base/settings.js'
import { type Listener, listen } from '../../src/http/listen.js'
import { createInstanceRecord, prove } from '../../src/instance/running.js'
import { createRelay, type Relay } from '../../src/relay.js'
import { silentLog } from '../../src/base/log.js'

const OWN = {
  pid: 1,
  url: '',
  provider: 'github',
  providerUrl: 'https://github.com',
  publicUrl: '',
  maxBody: 1,
}
const record = createInstanceRecord(OWN, Date.now())
const other = createInstanceRecord(OWN, Date.now())
const settings: Settings = {
  ...DEFAULTS,
  profile: 'test',
  folder: '',
  provider: 'github',
  providerUrl: 'https://github.com',
  webhookSecrets: { current: new Secret('secret') },
  port: 0,
  allowedHosts: [],
  store: 'memory',
  routes: NO_ROUTES,
}

let relay: Relay
let listener: Listener
beforeAll(async () => {
  relay = await createRelay(settings, { prove: (text) => prove(record, text) })
  listener = await listen(relay.app.fetch, { host: '127.0.0.1', port: 0, log: silentLog })
})
afterAll(async () => {
  await listener.close()
  await relay[Symbol.asyncDispose]()
})

async function ask(body: string, proof?: string, { app } = relay) {
  const headers = proof === undefined ? {} : { 'X-Relay-Proof': proof }
  const answer = await app.request('/instance', { method: 'POST', headers, body })
  return [answer.status, await answer.json()]
}

const NOT_FOUND = [404, { error: 'Not found' }]
const ROUTES = '{"call":"routes"}'
const RENEW = '{"call":"renew","userId":"ada"}'

describe('POST /instance', () => {
  it.each([
    ['no proof', undefined],
    ['an empty one', ''],
    ['one for another call', prove(record, RENEW)],
    ['one of another instance', prove(other, ROUTES)],
    ['half of one', prove(record, ROUTES).slice(0, 32)],
  ])('is not there for %s', async (_, proof) => {
    expect(await ask(ROUTES, proof)).toEqual(NOT_FOUND)
  })

  it('takes no answer of GET /health for a proof', async () => {
    const law = asyncProperty(stringMatching(/^[\x21-\x7e]{16,40}$/), async (challenge) => {
      const headers = { 'X-Relay-Challenge': challenge }
      const proof = (await relay.app.request('/health', { headers })).headers.get('x-relay-instance')
      expect(proof === null ? NOT_FOUND : await ask(challenge, proof)).toEqual(NOT_FOUND)
    })
    await assert(law, { examples: [['1234567890123456'], ['{"call":"routes"}']] })
  })
})
