import { describe, expect, it } from 'vitest'
import { Secret } from '../../src/base/secret.js'
import { createProvider } from '../../src/providers/open.js'
import { startSandbox } from '../../src/sandbox/start.js'
import { CLIENT_ID, CLIENT_SECRET } from '../helpers/authorization-server.js'
import { type Relay, startRelay } from './auth-rig.js'

describe('signing in at the sandbox', () => {
  it('goes through its consent page', async () => {
    await using sandbox = await startSandbox({
      clientId: CLIENT_ID,
      clientSecret: new Secret(CLIENT_SECRET),
      lifetimes: { access: 3600, refresh: 7200 },
    })
    await using relay = await startRelay({ name: 'sandbox', providerUrl: sandbox.url })
    const { cookie, back } = await consent(relay, 'Authorize')
    const { headers } = await relay.ask('GET', back, { Cookie: cookie })
    expect(headers['location']).toBe(`${relay.url}/?auth=success&userId=alice`)

    const holder = await relay.rig.tokens.get('alice')
    expect(holder).toEqual({
      userId: 'alice',
      accessToken: holder?.accessToken,
      expiresAt: relay.rig.time.now + 3_600_000,
      origin: sandbox.url,
    })
    expect(await relay.rig.tokens.findByBearer(holder?.accessToken ?? '')).toEqual(holder)
    const provider = createProvider({ name: 'sandbox', url: sandbox.url })
    expect(await provider.whoAmI(holder?.accessToken ?? '')).toEqual({ login: 'octo' })
  })

  it('comes back without a token when the user cancels', async () => {
    await using sandbox = await startSandbox({ clientId: CLIENT_ID, clientSecret: new Secret(CLIENT_SECRET) })
    await using relay = await startRelay({ name: 'sandbox', providerUrl: sandbox.url })
    const { cookie, back } = await consent(relay, 'Cancel')
    const { headers } = await relay.ask('GET', back, { Cookie: cookie })
    expect(headers['location']).toBe(`${relay.url}/?auth=error&reason=access_denied`)
    expect(await relay.rig.contents()).toEqual({})
  })

  /** What a browser does: follows the redirect, presses the button, and is sent back. */
  async function consent(relay: Relay, button: string) {
    const { headers } = await relay.ask('GET', '/auth/sandbox?userId=alice')
    const [cookie = ''] = headers['set-cookie']?.split(';') ?? []
    const location = new URL(headers['location'] ?? '')
    const page = await (await fetch(location)).text()
    const action = new URL(/<form[^>]* action="([^"]+)"/.exec(page)?.[1] ?? '', location)
    const fields = [...page.matchAll(/<input[^>]* name="([^"]+)" value="([^"]+)"/g)].map((field) =>
      field.slice(1, 3),
    )
    const pressed =
      new RegExp(`<button[^>]* name="([^"]+)" value="([^"]+)">${button}<`).exec(page)?.slice(1, 3) ?? []
    const body = new URLSearchParams(Object.fromEntries([...fields, pressed]))
    const answer = await fetch(action, { method: 'POST', body, redirect: 'manual' })
    const { origin, pathname, search } = new URL(answer.headers.get('location') ?? '')
    expect(origin + pathname).toBe(`${relay.url}/auth/sandbox/callback`)
    return { cookie, back: pathname + search }
  }
})
