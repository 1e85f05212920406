import { describe, expect, it } from 'vitest'
import { authorize, callback } from '../../src/auth/sign-in.js'
import { ACCESS_TOKEN, type Asked, createRig, type Reply } from './auth-rig.js'

const isToken = ({ url }: Asked): boolean => url.endsWith('/access_token')
const GRANT = { access_token: ACCESS_TOKEN, token_type: 'bearer', scope: 'repo' }

/** A code host whose API says this of the token, and whose token endpoint answers with one. */
const host =
  (api: Reply = { body: { login: 'octo' } }, token: Reply = { body: GRANT }) =>
  (asked: Asked): Reply =>
    isToken(asked) ? token : api

type Rig = Awaited<ReturnType<typeof createRig>>

/** A browser that has begun to sign in, and what it comes back with. */
async function begin({ parts }: Pick<Rig, 'parts'>, login?: string, userId = 'ada') {
  const { location, cookie } = await authorize(parts, userId, login)
  const query = new URLSearchParams({
    code: 'a-code',
    state: new URL(location).searchParams.get('state') ?? '',
  })
  return { location, cookie, query, cookies: { [cookie.name]: cookie.value } }
}

describe('a callback', () => {
  const invalid = { auth: 'error', reason: 'invalid_state' }

  it('of another code host is not completed', async () => {
    await using rig = await createRig(host())
    const visit = await begin(rig)
    const elsewhere = { ...rig.host, origin: 'https://elsewhere.example' }
    expect((await callback({ ...rig.parts, host: elsewhere }, visit)).outcome).toEqual(invalid)
    expect(rig.asked).toEqual([])
  })
})
