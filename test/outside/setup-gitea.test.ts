import { readdirSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { contentsOf } from '../kit/folder.js'
import { CLIENT, hostVariables, place } from '../kit/place.js'
import { type FullReply, type Received, receiver, valuesOf } from '../kit/receiver.js'
import { fresh } from './fixture.js'

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
  const client = { client_id: 'gitea-client', client_secret: SECRET }
  return { status: 201, body: { id: 1, name, ...client, redirect_uris } }
}

let created: unknown[]
const host = fresh(async () => {
  created = []
  return receiver((request) => gitea(request, created))
})
const here = fresh(() => {
  const none = { RELAY_CLIENT_ID: undefined, RELAY_CLIENT_SECRET: undefined }
  return place({ host: 'none', env: { ...hostVariables('gitea', host.url, CLIENT), ...none } })
})

/** The client that the profile has, and where it is known. */
async function stored(): Promise<string[]> {
  const names = ['provider', 'providerUrl', 'clientId', 'clientSecret']
  const ran = await Promise.all(names.map((name) => here.run('config', '--reveal', name)))
  return ran.map(({ out }) => out.trim())
}

describe('relay setup at a Gitea', () => {
  it('registers an OAuth application with a token from standard input, and keeps no token', async () => {
    const { code, out, err } = await here.runWith({ stdin: `${TOKEN}\n` }, 'setup')
    expect(code).toBe(0)
    const redirect_uris = ['http://127.0.0.1:8787/auth/gitea/callback']
    expect(created).toEqual([{ name: 'relay', redirect_uris, confidential_client: true }])
    expect(await stored()).toEqual(['gitea', host.url, 'gitea-client', SECRET])
    expect(err).toContain(`Stored the client gitea-client of ${host.url} in profile default\n`)
    expect(out + err).not.toContain(TOKEN)
    expect(out + err).not.toContain(SECRET)
    expect(await here.run('token')).toMatchObject({ code: 4, out: '' })
    expect(contentsOf(here.home)).toContain('gitea-client')
    expect(contentsOf(here.home)).not.toContain(TOKEN)
  })

  it('names the profile in the next step', async () => {
    const { err } = await here.runWith({ stdin: `${TOKEN}\n` }, 'setup', '--profile', 'work')
    expect(err).toContain('\nNext: relay login --profile work\n')
  })

  it('stores nothing when the token is refused, and says what it lacks', async () => {
    const { code, err } = await here.runWith({ stdin: 'other\n' }, 'setup')
    const lacks = 'Gitea refused: token does not have the required scope: write:user'
    expect({ code, err }).toEqual({ code: 8, err: `error: ${lacks}\n` })
    expect(readdirSync(here.home)).toEqual([])
  })

  it('takes an application that was registered by hand, from standard input', async () => {
    const ran = await here.runWith({ stdin: `by-hand\n${SECRET}\n` }, 'setup', '--oauth-app', '--json')
    expect(ran.code).toBe(0)
    expect(JSON.parse(ran.out)).toMatchObject({ provider: 'gitea', clientId: 'by-hand', app: null })
    expect(await stored()).toEqual(['gitea', host.url, 'by-hand', SECRET])
    expect(ran.out + ran.err).not.toContain(SECRET)
  })

  const HIDDEN = 'Client secret (not shown):'
  it.each([
    ['nothing', '', 'Client id: there is no answer'],
    ['a client alone', 'by-hand\n', `${HIDDEN} there is no answer`],
    [
      'a long secret',
      `by-hand\n${'x'.repeat(5000)}\n`,
      `${HIDDEN} the answer is longer than 4096 characters`,
    ],
  ])('stores nothing for %s', async (_, text, why) => {
    const { code, err } = await here.runWith({ stdin: text }, 'setup', '--oauth-app')
    expect({ code, err }).toEqual({ code: 2, err: `error: ${why}\n` })
    expect(readdirSync(here.home)).toEqual([])
  })

  it('has no App', async () => {
    const { code, err } = await here.runWith({ stdin: TOKEN }, 'setup', '--app-hook')
    expect({ code, err }).toEqual({ code: 2, err: 'error: --app-hook and --org are for a GitHub App only\n' })
  })
})
