import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { emptyFolder, type Env } from '../kit/folder.js'
import { addressOf, beginSignIn } from '../kit/pages.js'
import { hostVariables, type Place, place } from '../kit/place.js'
import { type Received, receiver } from '../kit/receiver.js'
import { fresh } from './fixture.js'

/** Seconds: it has ended when a command looks. */
const ENDED = 0.001

const CANARY = 'canary-client-secret'

/** Seconds that the next tokens live; undefined: they do not end. */
let lives: number | undefined

/** A code host that gives a token to anybody. */
const host = fresh(() =>
  receiver(({ path: asked }) => {
    const grant = { access_token: 'gho_1', token_type: 'bearer', scope: '' }
    const ends = lives === undefined ? {} : { expires_in: lives, refresh_token: 'refresh' }
    if (asked.includes('access_token')) return { body: { ...grant, ...ends } }
    return asked.endsWith('/user') ? { body: { login: 'octo' } } : { status: 204 }
  }),
)

/** A folder with the client in `.env`, and the code host's address where `where` says. */
function folder(where: string): string {
  const { url } = host
  const cwd = emptyFolder()
  const client = `RELAY_CLIENT_ID=client\nRELAY_CLIENT_SECRET=${CANARY}\n`
  const inDotenv = where === '.env' ? `RELAY_PROVIDER=sandbox\nRELAY_PROVIDER_URL=${url}\n` : ''
  writeFileSync(path.join(cwd, '.env'), client + inDotenv)
  if (where === 'relay.json')
    writeFileSync(path.join(cwd, where), JSON.stringify({ provider: 'sandbox', providerUrl: url }))
  return cwd
}

/** A browser that signs in without a person, as a code host could have it. */
async function visit(address: string): Promise<void> {
  const { authorize, cookie } = await beginSignIn(address)
  const { searchParams } = new URL(authorize)
  const back = `${searchParams.get('redirect_uri')}?code=1&state=${searchParams.get('state')}`
  await fetch(back, { headers: { cookie }, redirect: 'manual' })
}

/** Signs in there; the token has ended, and can be renewed. */
async function signInAt(here: Place): Promise<void> {
  lives = ENDED
  const env = hostVariables('sandbox', host.url, { id: 'client', secret: CANARY })
  await using login = here.startWith({ env }, 'login', '--no-browser')
  await visit(await addressOf(login))
  await login.ended
  lives = undefined
}

/** Renews a token that has ended, signs in, and revokes the token; gives the exit codes, stderr, and the calls with the secret. */
async function useSecret(cwd: string, env: Env = {}) {
  await using here = await place({ host: 'none', env: { RELAY_PORT: '0' } })
  await signInAt(here)
  const before = host.received.length
  const token = await here.runWith({ cwd, env }, 'token')
  await using running = here.startWith({ cwd, env }, 'login', '--no-browser')
  // It ends without an address where it is refused.
  await addressOf(running).then(visit, () => undefined)
  const login = await running.ended
  const revoke = await here.runWith({ cwd, env }, 'revoke')
  const received = host.received.slice(before)
  const rans = [token, login, revoke]
  return { codes: rans.map(({ code }) => code), errors: rans.map(({ err }) => err), received }
}

/** The calls that the secret was in, however it was written there. */
function withSecret(received: readonly Received[]): string[] {
  const basic = Buffer.from(`client:${CANARY}`).toString('base64')
  const has = ({ headers, body }: Received): boolean =>
    [CANARY, basic].some((text) => JSON.stringify([headers, body.toString()]).includes(text))
  return received.filter(has).map(({ method, path: asked }) => `${method} ${asked}`)
}

describe('a client secret in .env', () => {
  it.each(['relay.json', '.env'])('goes to no code host that only %s names, exit 2', async (where) => {
    const { codes, errors, received } = await useSecret(folder(where))
    expect({ codes, received }).toEqual({ codes: [2, 2, 2], received: [] })
    const only = /^error: RELAY_CLIENT_SECRET in \.env is not sent to an address that only this folder/
    for (const text of errors) expect(text).toMatch(only)
    expect(errors.join('')).not.toContain(CANARY)
  })

  it('goes to the one that the user names, when signing in, renewing and revoking', async () => {
    const cwd = folder('relay.json')
    const { codes, received } = await useSecret(cwd, { RELAY_PROVIDER_URL: host.url })
    expect(codes).toEqual([0, 0, 0])
    const grant = 'POST /login/oauth/access_token'
    expect(withSecret(received)).toEqual([grant, grant, 'DELETE /api/v3/applications/client/token'])
  })
})
