import { generateKeyPairSync } from 'node:crypto'
import { expect, it } from 'vitest'
import { Secret } from '../../../src/base/secret.js'
import { createProvider } from '../../../src/providers/open.js'
import { appToken } from '../../../src/providers/github/app-token.js'
import { startSandbox } from '../../../src/testing/index.js'

it('makes a token that the code host accepts, and sets the secret of the hook with it', async () => {
  await using sandbox = await startSandbox()
  const { apps } = createProvider({ name: 'sandbox', url: sandbox.url }).registration
  if (!apps) throw new Error('the sandbox has Apps')
  const manifest = apps.manifest({
    name: 'relay-test',
    redirectUrl: 'http://127.0.0.1:1/setup/callback',
    callbackUrl: 'http://127.0.0.1:1/auth/sandbox/callback',
    hook: { url: 'http://127.0.0.1:1/webhook', active: false },
  })
  const post = (path: string, fields: Record<string, string>): Promise<Response> =>
    fetch(sandbox.url + path, { method: 'POST', body: new URLSearchParams(fields), redirect: 'manual' })
  const page = await (await post('/settings/apps/new?state=x', { manifest })).text()
  const [, token = ''] = /name="authenticity_token" value="([^"]+)"/.exec(page) ?? []
  const agreed = await post('/settings/apps', { authenticity_token: token, name: 'relay-test' })
  const code = new URL(agreed.headers.get('location') ?? '').searchParams.get('code') ?? ''

  const { app, webhookSecret, installUrl } = await apps.convert(code)
  expect(webhookSecret?.reveal()).toMatch(/^[0-9a-f]{40}$/)
  expect(installUrl).toBe(`${sandbox.url}/apps/relay-test/installations/new`)
  await apps.hook.change(app, { secret: new Secret('another-secret') })
  const answer = await fetch(`${sandbox.url}/api/v3/app`, {
    headers: { authorization: `Bearer ${appToken(app, Date.now())}` },
  })
  expect([answer.status, await answer.json()]).toEqual([
    200,
    expect.objectContaining({ id: app.id, slug: 'relay-test' }),
  ])
  await expect(apps.convert(code)).rejects.toMatchObject({ kind: 'not_found' })
})

it('is signed for nine minutes, by the id', () => {
  const { privateKey } = generateKeyPairSync('rsa', {
    modulusLength: 2048,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs1', format: 'pem' },
  })
  const token = appToken({ id: 7, slug: 'x', privateKey: new Secret(privateKey) }, 1_000_000_999)
  const [header = '', claims = ''] = token.split('.')
  const decode = (part: string): unknown => JSON.parse(Buffer.from(part, 'base64url').toString())
  expect([decode(header), decode(claims)]).toEqual([
    { alg: 'RS256', typ: 'JWT' },
    { iat: 999_940, exp: 1_000_540, iss: '7' },
  ])
})

it('does not quote a key that is none', () => {
  const app = { id: 7, slug: 'x', privateKey: new Secret('canary') }
  expect(() => appToken(app, 0)).toThrow('The stored key of the App is unusable. Run relay setup again')
})
