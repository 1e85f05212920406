import { hc } from 'hono/client'
import { describe, expect, it } from 'vitest'
import { Secret } from '../../src/base/secret.js'
import { DEFAULTS, NO_ROUTES } from '../../src/base/settings.js'
import { createRelay, type Relay } from '../../src/relay.js'
import { startSandbox } from '../../src/testing/index.js'

describe('in-process', () => {
  it('answers a typed client without a port', async () => {
    await using sandbox = await startSandbox()
    await using relay = await createRelay({
      ...DEFAULTS,
      profile: 'test',
      folder: '',
      provider: 'sandbox',
      providerUrl: sandbox.url,
      webhookSecrets: { current: new Secret('secret') },
      port: 0,
      allowedHosts: [],
      store: 'memory',
      routes: NO_ROUTES,
    })
    const client = hc<Relay['app']>('http://localhost', { fetch: relay.app.request })
    const response = await client.health.$get()
    const { status }: { status: string } = await response.json()
    expect(status).toBe('ok')

    const accessToken = await sandbox.token()
    const grant = { accessToken, expiresAt: Date.now() + 60_000, origin: sandbox.url }
    await relay.tokens.save('mona', grant)
    const answer = await client.api.comment.$post(
      { json: { owner: 'octo', repo: 'demo', issueNumber: 1, body: 'hello' } },
      { headers: { authorization: `Bearer ${accessToken}` } },
    )
    const { ok, id, url }: { ok: true; id: number; url: string } = await answer.json()
    expect({ ok, id, url }).toEqual({ ok: true, id: sandbox.comments.at(-1)?.id, url: expect.any(String) })
  })
})
