import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { emptyFolder } from '../../helpers/context.js'
import { type Received, scriptedServer } from '../../helpers/scripted-server.js'
import { beginSignIn } from '../../helpers/sign-in.js'
import { keepToken, shell } from '../rig.js'

const CANARY = 'canary-client-secret'

/** A code host that gives a token to anybody. */
async function codeHost() {
  return scriptedServer(({ path: asked }) => {
    if (asked.includes('access_token'))
      return { body: { access_token: 'gho_1', token_type: 'bearer', scope: '' } }
    return asked.endsWith('/user') ? { body: { login: 'octo' } } : { status: 204 }
  })
}

/** A folder with the client in `.env`, and the code host's address where `place` says. */
function folder(place: string, url: string): string {
  const cwd = emptyFolder()
  const client = `RELAY_CLIENT_ID=client\nRELAY_CLIENT_SECRET=${CANARY}\n`
  const inDotenv = place === '.env' ? `RELAY_PROVIDER=sandbox\nRELAY_PROVIDER_URL=${url}\n` : ''
  writeFileSync(path.join(cwd, '.env'), client + inDotenv)
  if (place === 'relay.json')
    writeFileSync(path.join(cwd, place), JSON.stringify({ provider: 'sandbox', providerUrl: url }))
  return cwd
}

/** A browser that signs in without a person, as a code host could have it. */
async function visit(address: string): Promise<void> {
  const { authorize, cookie } = await beginSignIn(address)
  const { searchParams } = new URL(authorize)
  const back = `${searchParams.get('redirect_uri')}?code=1&state=${searchParams.get('state')}`
  await fetch(back, { headers: { cookie }, redirect: 'manual' })
}

/** Signs in, renews a token that has ended, and revokes one; gives the exit codes, and stderr. */
async function useSecret(cwd: string, url: string, env: Record<string, string> = {}) {
  const here = shell({ RELAY_PORT: '0', ...env })
  let err = ''
  const stderr = {
    write(text: string) {
      err += text
      const [, address] = /^ {2}(http\S+)$/m.exec(text) ?? []
      if (address) void visit(address)
    },
  }
  const login = await here.run(['login', '--no-browser'], { cwd, stderr })
  const ended = { accessToken: 'ended', origin: url, expiresAt: Date.now() - 1, refreshToken: 'refresh' }
  await keepToken(here, ended)
  const token = await here.run(['token'], { cwd })
  await keepToken(here, { accessToken: 'live', origin: url })
  const revoke = await here.run(['revoke'], { cwd })
  return { codes: [login, token, revoke].map(({ code }) => code), errors: [err, token.err, revoke.err] }
}

/** The calls that the secret was in, however it was written there. */
function withSecret(received: readonly Received[]): string[] {
  const basic = Buffer.from(`client:${CANARY}`).toString('base64')
  return received
    .filter(({ headers, body }) =>
      [CANARY, basic].some((text) => JSON.stringify([headers, body]).includes(text)),
    )
    .map(({ method, path: asked }) => `${method} ${asked}`)
}

describe('a client secret in .env', () => {
  it.each(['relay.json', '.env'])('goes to no code host that only %s names, exit 2', async (place) => {
    await using host = await codeHost()
    const cwd = folder(place, host.url)
    const { codes, errors } = await useSecret(cwd, host.url)
    expect({ codes, received: host.received }).toEqual({ codes: [2, 2, 2], received: [] })
    for (const text of errors)
      expect(text).toMatch(
        /^error: RELAY_CLIENT_SECRET in \.env is not sent to an address that only this folder/,
      )
    expect(errors.join('')).not.toContain(CANARY)
  })

  it('goes to the one that the user names, when signing in, renewing and revoking', async () => {
    await using host = await codeHost()
    const cwd = folder('relay.json', host.url)
    const { codes } = await useSecret(cwd, host.url, { RELAY_PROVIDER_URL: host.url })
    expect({ codes, calls: withSecret(host.received) }).toEqual({
      codes: [0, 0, 0],
      calls: [
        'POST /login/oauth/access_token',
        'POST /login/oauth/access_token',
        'DELETE /api/v3/applications/client/token',
      ],
    })
  })
})
