import { readdirSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { contentsOf } from '../kit/folder.js'
import { CLIENT, hostVariables, type Place, place } from '../kit/place.js'
import { type FullReply, type Received, receiver, valuesOf } from '../kit/receiver.js'

const TOKEN = 'canary-access-token'
const SECRET = 'gto_canary-client-secret'

/** A Gitea that registers OAuth applications for who has {@link TOKEN}. */
function gitea(request: Received, created: unknown[]): FullReply {
  const { method, path, body } = request
  if (path === '/api/v1/version') return { body: { version: '1.21.0' } }
  if (path === '/login/oauth/access_token') return { status: 400, body: { error: 'unauthorized_client' } }
  if (`${method} ${path}` !== 'POST /api/v1/user/applications/oauth2') return { status: 404, body: {} }
  if (valuesOf(request, 'authorization')[0] !== `Bearer ${TOKEN}`)
    return { status: 403, body: { message: 'token does not have the required scope: write:user' } }
  const { name, redirect_uris } = JSON.parse(body.toString())
  created.push(JSON.parse(body.toString()))
  return {
    status: 201,
    body: { id: 1, name, client_id: 'gitea-client', client_secret: SECRET, redirect_uris },
  }
}

async function start() {
  const created: unknown[] = []
  const host = await receiver((request) => gitea(request, created))
  const env = hostVariables('gitea', host.url, CLIENT)
  const none = { RELAY_CLIENT_ID: undefined, RELAY_CLIENT_SECRET: undefined }
  const here = await place({ host: 'none', env: { ...env, ...none } })
  return {
    host,
    here,
    created,
    async [Symbol.asyncDispose]() {
      await here[Symbol.asyncDispose]()
      await host[Symbol.asyncDispose]()
    },
  }
}

/** The client that the profile has, and where it is known. */
async function stored(here: Place): Promise<string[]> {
  const names = ['provider', 'providerUrl', 'clientId', 'clientSecret']
  const ran = await Promise.all(names.map((name) => here.run('config', '--reveal', name)))
  return ran.map(({ out }) => out.trim())
}

describe('relay setup at a Gitea', () => {
  it('registers an OAuth application with a token from standard input, and keeps no token', async () => {
    await using running = await start()
    const { host, here, created } = running
    const { code, out, err } = await here.runWith({ stdin: `${TOKEN}\n` }, 'setup')
    expect(code).toBe(0)
    expect(created).toEqual([
      {
        name: 'relay',
        redirect_uris: ['http://127.0.0.1:8787/auth/gitea/callback'],
        confidential_client: true,
      },
    ])
    expect(await stored(here)).toEqual(['gitea', host.url, 'gitea-client', SECRET])
    expect(err).toContain(`Stored the client gitea-client of ${host.url} in profile default\n`)
    expect(out + err).not.toContain(TOKEN)
    expect(out + err).not.toContain(SECRET)
    expect(await here.run('token')).toMatchObject({ code: 4, out: '' })
    expect(contentsOf(here.home)).toContain('gitea-client')
    expect(contentsOf(here.home)).not.toContain(TOKEN)
  })

  it('stores nothing when the token is refused, and says what it lacks', async () => {
    await using running = await start()
    const { code, err } = await running.here.runWith({ stdin: 'other\n' }, 'setup')
    expect({ code, err }).toEqual({
      code: 8,
      err: 'error: Gitea refused: token does not have the required scope: write:user\n',
    })
    expect(readdirSync(running.here.home)).toEqual([])
  })

  it('takes an application that was registered by hand, from standard input', async () => {
    await using running = await start()
    const { here, host } = running
    const ran = await here.runWith({ stdin: `by-hand\n${SECRET}\n` }, 'setup', '--oauth-app', '--json')
    expect(ran.code).toBe(0)
    expect(JSON.parse(ran.out)).toMatchObject({ provider: 'gitea', clientId: 'by-hand', app: null })
    expect(await stored(here)).toEqual(['gitea', host.url, 'by-hand', SECRET])
    expect(ran.out + ran.err).not.toContain(SECRET)
  })

  it.each([
    ['nothing', '', 'Client id: there is no answer'],
    ['a client alone', 'by-hand\n', 'Client secret (not shown): there is no answer'],
    [
      'a secret that is too long',
      `by-hand\n${'x'.repeat(5000)}\n`,
      'Client secret (not shown): the answer is longer than 4096 characters',
    ],
  ])('stores nothing for %s', async (_, text, why) => {
    await using running = await start()
    const { code, err } = await running.here.runWith({ stdin: text }, 'setup', '--oauth-app')
    expect({ code, err }).toEqual({ code: 2, err: `error: ${why}\n` })
    expect(readdirSync(running.here.home)).toEqual([])
  })

  it('has no App', async () => {
    await using running = await start()
    const { code, err } = await running.here.runWith({ stdin: TOKEN }, 'setup', '--app-hook')
    expect({ code, err }).toEqual({ code: 2, err: 'error: --app-hook and --org are for a GitHub App only\n' })
  })
})
