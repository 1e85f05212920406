import { describe, expect, it } from 'vitest'
import { listProfiles } from '../../../../src/instance/profile.js'
import { readStoredClient } from '../../../../src/setup/record.js'
import { type Answer, type Received, scriptedServer } from '../../../helpers/scripted-server.js'
import { piped, profileStore, type Shell, shell } from '../../rig.js'

const TOKEN = 'canary-access-token'
const SECRET = 'gto_canary-client-secret'

/** A Gitea that registers OAuth applications for who has {@link TOKEN}. */
function gitea({ method, path, headers, body }: Received, created: unknown[]): Answer {
  if (path === '/api/v1/version') return { body: { version: '1.21.0' } }
  if (path === '/login/oauth/access_token') return { status: 400, body: { error: 'unauthorized_client' } }
  if (`${method} ${path}` !== 'POST /api/v1/user/applications/oauth2') return { status: 404, body: {} }
  if (headers.authorization !== `Bearer ${TOKEN}`)
    return { status: 403, body: { message: 'token does not have the required scope: write:user' } }
  const { name, redirect_uris } = JSON.parse(body)
  created.push(JSON.parse(body))
  return {
    status: 201,
    body: { id: 1, name, client_id: 'gitea-client', client_secret: SECRET, redirect_uris },
  }
}

async function start() {
  const created: unknown[] = []
  const host = await scriptedServer((request) => gitea(request, created))
  const here = shell({ RELAY_PROVIDER: 'gitea', RELAY_PROVIDER_URL: host.url })
  return { host, here, created, [Symbol.asyncDispose]: () => host[Symbol.asyncDispose]() }
}

async function stored(shell: Shell) {
  await using store = await profileStore(shell)
  const found = await readStoredClient(store)
  return found && { ...found, client: { id: found.client.id, secret: found.client.secret.reveal() } }
}

describe('relay setup at a Gitea', () => {
  it('registers an OAuth application with a token from standard input, and keeps no token', async () => {
    await using running = await start()
    const { host, here, created } = running
    const { code, out, err } = await here.run(['setup'], { stdin: piped(`${TOKEN}\n`) })
    expect(code).toBe(0)
    expect(created).toEqual([
      {
        name: 'relay',
        redirect_uris: ['http://127.0.0.1:8787/auth/gitea/callback'],
        confidential_client: true,
      },
    ])
    expect(await stored(here)).toEqual({
      provider: 'gitea',
      providerUrl: host.url,
      client: { id: 'gitea-client', secret: SECRET },
    })
    expect(err).toContain(`Stored the client gitea-client of ${host.url} in profile default\n`)
    expect(out + err).not.toContain(TOKEN)
    expect(out + err).not.toContain(SECRET)
    await using store = await profileStore(here)
    expect(await store.list('')).toEqual(['setup-client', 'setup:secret'])
  })

  it('stores nothing when the token is refused, and says what it lacks', async () => {
    await using running = await start()
    const { code, err } = await running.here.run(['setup'], { stdin: piped('other\n') })
    expect({ code, err }).toEqual({
      code: 8,
      err: 'error: Gitea refused: token does not have the required scope: write:user\n',
    })
    expect(listProfiles(running.here.home)).toEqual([])
  })

  it('takes an application that was registered by hand, from standard input', async () => {
    await using running = await start()
    const { here, host } = running
    const ran = await here.run(['setup', '--oauth-app', '--json'], { stdin: piped(`by-hand\n${SECRET}\n`) })
    expect(ran.code).toBe(0)
    expect(JSON.parse(ran.out)).toMatchObject({ provider: 'gitea', clientId: 'by-hand', app: null })
    expect(await stored(here)).toEqual({
      provider: 'gitea',
      providerUrl: host.url,
      client: { id: 'by-hand', secret: SECRET },
    })
    expect(ran.out + ran.err).not.toContain(SECRET)
  })

  it.each([
    ['', 'Client id: there is no answer'],
    ['by-hand\n', 'Client secret (not shown): there is no answer'],
    [
      `by-hand\n${'x'.repeat(5000)}\n`,
      'Client secret (not shown): the answer is longer than 4096 characters',
    ],
  ])('stores nothing for %j', async (text, why) => {
    await using running = await start()
    const { code, err } = await running.here.run(['setup', '--oauth-app'], { stdin: piped(text) })
    expect({ code, err }).toEqual({ code: 2, err: `error: ${why}\n` })
    expect(listProfiles(running.here.home)).toEqual([])
  })

  it('has no App', async () => {
    await using running = await start()
    const { code, err } = await running.here.run(['setup', '--app-hook'], { stdin: piped(TOKEN) })
    expect({ code, err }).toEqual({ code: 2, err: 'error: --app-hook and --org are for a GitHub App only\n' })
  })
})
