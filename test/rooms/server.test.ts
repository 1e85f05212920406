import { assert, asyncProperty, stringMatching } from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Secret } from '../../src/base/secret.js'
import { DEFAULTS, NO_ROUTES, type Settings } from '../../src/base/settings.js'
import { createInstanceRecord, prove } from '../../src/instance/protocol.js'
import { start, type Started } from '../../src/serve/start.js'

const code = { provider: 'github', providerUrl: 'https://github.com' } as const
const own = { pid: 1, url: '', profile: 'test' }
const other = createInstanceRecord(own)
const settings: Settings = {
  ...DEFAULTS,
  ...code,
  profile: 'test',
  folder: '',
  webhookSecrets: { current: new Secret('secret') },
  port: 0,
  allowedHosts: [],
  store: 'memory',
  routes: NO_ROUTES,
}

let started: Started
beforeAll(async () => {
  started = await start(settings)
})
afterAll(() => started[Symbol.asyncDispose]())

const proofOf = (text: string): string => started.instance.prove(text)
const request = (...given: Parameters<Started['instance']['app']['request']>) =>
  started.instance.app.request(...given)

async function ask(body: string, proof?: string) {
  const headers = proof === undefined ? {} : { 'X-Relay-Proof': proof }
  const answer = await request('/instance', { method: 'POST', headers, body })
  return [answer.status, await answer.json()]
}

const NOT_FOUND = [404, { error: 'Not found' }]
const ROUTES = '{"call":"routes"}'
const RENEW = '{"call":"renew","userId":"ada"}'

describe('POST /instance', () => {
  it.each([
    ['no proof', () => undefined],
    ['an empty one', () => ''],
    ['one for another call', () => proofOf(RENEW)],
    ['one of another instance', () => prove(other, ROUTES)],
    ['half of one', () => proofOf(ROUTES).slice(0, 32)],
  ])('is not there for %s', async (_, proof) => {
    expect(await ask(ROUTES, proof())).toEqual(NOT_FOUND)
  })

  it('takes no answer of GET /health for a proof', async () => {
    const law = asyncProperty(stringMatching(/^[\w+/=-]{16,40}$/), async (challenge) => {
      const headers = { 'X-Relay-Challenge': challenge }
      const proof = (await request('/health', { headers })).headers.get('x-relay-instance')
      expect(proof === null ? NOT_FOUND : await ask(challenge, proof)).toEqual(NOT_FOUND)
    })
    await assert(law, { examples: [['1234567890123456'], ['{"call":"routes"}']] })
  })
})
