import { describe, expect, it } from 'vitest'
import { Secret } from '../../src/base/secret.js'
import { createProvider } from '../../src/providers/open.js'
import { scriptedServer } from '../helpers/scripted-server.js'

const TOKEN = 'gho_canary'
const client = { id: '8e2b-uuid.x y', secret: new Secret('geheim é') }

describe('revoking a token', () => {
  it.each(['github', 'sandbox'] as const)('asks %s as the application', async (name) => {
    await using server = await scriptedServer(() => ({ status: 204 }))
    await createProvider({ name, url: server.url }).revokeToken?.(TOKEN, client)
    const [request] = server.received
    expect(server.received).toHaveLength(1)
    expect(request).toMatchObject({
      method: 'DELETE',
      path: '/api/v3/applications/8e2b-uuid.x%20y/token',
      body: JSON.stringify({ access_token: TOKEN }),
      headers: {
        accept: 'application/vnd.github+json',
        authorization: `Basic ${Buffer.from('8e2b-uuid.x y:geheim é').toString('base64')}`,
        'content-type': 'application/json',
        'user-agent': 'webhook-relay',
        'x-github-api-version': '2022-11-28',
      },
    })
  })

  it('is nothing Gitea can do', () => {
    expect(createProvider({ name: 'gitea', url: 'https://code.test' })).not.toHaveProperty('revokeToken')
  })

  it.each([
    [403, 'forbidden', 'GitHub refused: [secret] and [secret] and [secret]'],
    [429, 'rate_limited', 'GitHub refused: [secret] and [secret] and [secret]'],
  ])('repeats no secret that is in the answer, with status %i', async (status, kind, message) => {
    const basic = Buffer.from(`${client.id}:${client.secret.reveal()}`).toString('base64')
    const body = { message: `${TOKEN} and ${basic} and geheim é` }
    await using server = await scriptedServer(() => ({ status, body }))
    const provider = createProvider({ name: 'github', url: server.url })
    await expect(provider.revokeToken?.(TOKEN, client)).rejects.toMatchObject({ kind, message })
    expect(server.received).toHaveLength(1)
  })
})
