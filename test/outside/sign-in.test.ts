import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { ACCESS_TOKEN, OAUTH_CLIENT } from '../kit/authorization-server.js'
import type { RawAnswer } from '../kit/http.js'
import { faulty } from '../kit/place.js'
import { prints } from '../kit/run.js'
import { shared } from './fixture.js'
import { PRIVATE, type Rig, startRig } from './sign-in-place.js'

const JSON_TYPE = 'application/json'
const LOGIN = 'a-login_0123456789'
/** What matters of an answer. */
function brief({ status, headers, body }: RawAnswer) {
  const { 'cache-control': cache = '', 'referrer-policy': referrer = '' } = headers
  return { status, type: headers['content-type'], body, 'cache-control': cache, 'referrer-policy': referrer }
}

/** An error's answer, so abridged. */
function refused(status: number, error: string) {
  return { status, type: JSON_TYPE, body: JSON.stringify({ error }), ...PRIVATE }
}

/** For the tests that do not disturb each other. */
const rig = shared(() => startRig())

describe('GET /auth/{provider}', () => {
  it.each(['/auth/github', '/auth/provider'])('redirects from %s and sets the cookie', async (path) => {
    const { status, headers, body } = await rig.ask('GET', `${path}?userId=alice`)

    const location = new URL(headers['location'] ?? '')
    const query = Object.fromEntries(location.searchParams)
    expect([status, body]).toEqual([302, ''])
    expect(headers).toMatchObject(PRIVATE)
    expect(location.origin + location.pathname).toBe(`${rig.server.url}/login/oauth/authorize`)
    expect(query).toMatchObject({
      client_id: OAUTH_CLIENT.id,
      redirect_uri: `${rig.relay.address}/auth/github/callback`,
    })
    const name = `relay_oauth_${sha256(query['state'] ?? '').slice(0, 8)}`
    expect(headers['set-cookie']).toMatch(
      new RegExp(`^${name}=[\\w-]{43}; Max-Age=600; Path=/auth/github/callback; HttpOnly; SameSite=Lax$`),
    )
  })

  it('sets a Secure cookie when the public address is https', async () => {
    await using own = await startRig({ env: { RELAY_PUBLIC_URL: 'https://relay.test/a' } })
    const { headers } = await own.ask('GET', '/auth/github?userId=alice')
    expect(headers['set-cookie']).toMatch(
      /; Path=\/a\/auth\/github\/callback; HttpOnly; Secure; SameSite=Lax$/,
    )
  })

  const A_SMILE = '%F0%9F%98%80'
  const REFUSED = {
    'Missing userId': ['', '?user=alice', '?userIds=alice&xuserId=alice', '?userId', '?userId=', '?login=x'],
    'Invalid userId': [
      '?userId=alice&userId=bob',
      '?userId=alice&userId=alice',
      '?userId=&userId',
      ...['a'.repeat(257), A_SMILE.repeat(65), 'a%20b', 'a+b', 'a%2Fb', 'a/b', 'a%00b', '.', '%2e%2e'].map(
        (userId) => `?userId=${userId}`,
      ),
      // Broken percent-encoding, bytes that are not UTF-8, half a character.
      ...['%zz', 'a%2', '%FF', '%ED%A0%BD'].map((userId) => `?userId=${userId}`),
    ],
    'Invalid login': [
      '',
      '=',
      '=0123456789abcde',
      `=${'a'.repeat(65)}`,
      `=${LOGIN}&login=${LOGIN}`,
      `=${LOGIN}&login=`,
      ...[',', '%41', '=', '+'].map((end) => `=${LOGIN}${end}`),
    ].map((login) => `?userId=alice&login${login}`),
  }
  const refusals = Object.entries(REFUSED).flatMap(([error, queries]) =>
    queries.map((query) => [error, query] as const),
  )
  it.each(refusals)('refuses with "%s": %.99s', async (error, query) => {
    expect(brief(await rig.ask('GET', `/auth/github${query}`))).toEqual(refused(400, error))
  })

  it('is for a browser that opens it, and not for a page that loads it', async () => {
    const ask = async (destination: string): Promise<number> =>
      (await rig.ask('GET', '/auth/github?userId=alice', { 'Sec-Fetch-Dest': destination })).status
    const answers = await Promise.all(['document', 'image', 'iframe', 'empty'].map(ask))
    expect(answers).toEqual([302, 403, 403, 403])
  })

  it('names what to set when no client is configured', async () => {
    await using own = await startRig({ env: { RELAY_CLIENT_ID: undefined, RELAY_CLIENT_SECRET: undefined } })
    const none = 'Sign-in is not configured: set RELAY_CLIENT_ID and RELAY_CLIENT_SECRET'
    expect(brief(await own.ask('GET', '/auth/github?userId=alice'))).toEqual(refused(503, none))
  })
})

describe('GET /auth/{provider}/callback', () => {
  it('returns to the application, signed in, and deletes the cookie', async () => {
    const { back, cookie } = await rig.agreed('anna')
    const { status, headers, body } = await rig.ask('GET', back, { Cookie: `other=1; ${cookie}` })
    expect([status, body]).toEqual([302, ''])
    expect(headers).toMatchObject({
      ...PRIVATE,
      location: `${rig.relay.address}/?auth=success&userId=anna`,
      'set-cookie': `${cookie.split('=')[0]}=; Max-Age=0; Path=/auth/github/callback`,
    })
    expect(await rig.here.run('token', '--user', 'anna')).toEqual(prints(`${ACCESS_TOKEN}\n`))
    const again = await rig.ask('GET', back, { Cookie: cookie })
    expect(again.headers['location']).toBe(`${rig.relay.address}/?auth=error&reason=invalid_state`)
  })

  it('signs in at Gitea, which names no scope and whose tokens are JWTs', async () => {
    await using own = await startRig({ name: 'gitea' })
    const accessToken = `${'eyJhbGciOiJSUzI1NiJ9'.repeat(40)}.e30.c2ln`
    own.server.grant = { access_token: accessToken, expires_in: 3600, refresh_token: 'e30.e30.e30' }
    const { query, cookie } = await own.agreed()
    query.delete('iss')
    const back = `/auth/gitea/callback?${query.toString()}`
    const { headers } = await own.ask('GET', back, { Cookie: cookie })
    expect(headers['location']).toBe(`${own.relay.address}/?auth=success&userId=alice`)
    expect((await own.here.run('token', '--user', 'alice')).out).toBe(`${accessToken}\n`)
    expect(await commentWith(own, accessToken)).toBe(404)
  })

  it.each([
    ['', '/?@'],
    ['/a?', '/a?@'],
    ['/a?x=%20+&flag&auth=old#/home?y=1', '/a?x=%20+&flag&auth=old&@#/home?y=1'],
    ['/done/?to=/#/', '/done/?to=/&@#/'],
  ])('adds the outcome to the query of https://app.test%s', async (base, expected) => {
    await using own = await startRig({ env: { RELAY_BASE_URL: `https://app.test${base}` } })
    const { back, cookie } = await own.agreed('😀&#')
    const { headers } = await own.ask('GET', back, { Cookie: cookie })
    const outcome = 'auth=success&userId=%F0%9F%98%80%26%23'
    expect(headers['location']).toBe(`https://app.test${expected.replace('@', outcome)}`)
  })

  it('lets one of many visits with one state succeed', async () => {
    const { back, cookie } = await rig.agreed()
    const before = rig.server.requests.length
    const visits = Array.from({ length: 10 }, () => rig.ask('GET', back, { Cookie: cookie }))
    const answers = await Promise.all(visits)
    const outcomes = answers.map(({ headers }) => new URL(headers['location'] ?? '').search).toSorted()
    const lost = Array<string>(9).fill('?auth=error&reason=invalid_state')
    expect(outcomes).toEqual([...lost, '?auth=success&userId=alice'])
    expect(rig.server.requests).toHaveLength(before + 1)
  })

  it('completes two sign-ins of one browser in either order', async () => {
    const alice = await rig.agreed('alice')
    const bob = await rig.agreed('bob')
    const Cookie = `${alice.cookie}; ${bob.cookie}`
    for (const [{ back }, user] of [
      [bob, 'bob'],
      [alice, 'alice'],
    ] as const) {
      const { headers } = await rig.ask('GET', back, { Cookie })
      expect(headers['location']).toMatch(new RegExp(`success&userId=${user}$`))
    }
  })
})

describe('DELETE /auth/token/:userId', () => {
  it('revokes a token at once, and succeeds when there is none', async () => {
    await using own = await startRig()
    own.server.grant = { refresh_token: 'ghr_1' }
    const { back, cookie } = await own.agreed()
    await own.ask('GET', back, { Cookie: cookie })
    expect(await own.tokenOf('alice')).toBe(0)
    expect(await commentWith(own, ACCESS_TOKEN)).toBe(404)

    for (let i = 0; i < 2; i++) {
      const answer = await own.ask('DELETE', '/auth/token/alice')
      expect(brief(answer)).toEqual({ status: 200, type: JSON_TYPE, body: '{"ok":true}', ...PRIVATE })
      expect(await own.tokenOf('alice')).toBe(4)
      expect(await commentWith(own, ACCESS_TOKEN)).toBe(401)
    }
  })

  const A_SMILE = '%F0%9F%98%80'
  it.each(['__proto__', 'a%25b', '%25zz', A_SMILE, A_SMILE.repeat(64), 'a'.repeat(256), 'a%3Fb%23c'])(
    'accepts the userId %s unchanged',
    async (text) => {
      const userId = decodeURIComponent(text)
      for (const each of [userId, 'bystander']) {
        const { back, cookie } = await rig.agreed(each)
        const { headers } = await rig.ask('GET', back, { Cookie: cookie })
        expect(headers['location']).toContain('auth=success')
      }
      expect((await rig.ask('DELETE', `/auth/token/${text}?x=/y`)).status).toBe(200)
      expect([await rig.tokenOf(userId), await rig.tokenOf('bystander')]).toEqual([4, 0])
    },
  )

  // Broken percent-encoding, bytes that are not UTF-8, half a character come last.
  it.each(['', 'a'.repeat(257), 'a%2Fb', 'a%2fb', 'a%20b', 'a%0Ab', '%zz', '%FF', '%ED%A0%BD'])(
    'refuses the userId %s',
    async (userId) => {
      expect(brief(await rig.ask('DELETE', `/auth/token/${userId}`))).toEqual(refused(400, 'Invalid userId'))
    },
  )

  it.each([
    ['.', 400],
    ['%2e', 400],
    ['..', 404],
    ['%2E%2e', 404],
  ])('never accepts %s as a userId: URLs resolve it', async (userId, status) => {
    expect((await rig.ask('DELETE', `/auth/token/${userId}`)).status).toBe(status)
  })

  it('answers 503 when the store fails, and nothing is lost', async () => {
    const storage = faulty()
    await using own = await startRig({ seams: () => ({ storage }) })
    const { back, cookie } = await own.agreed()
    await own.ask('GET', back, { Cookie: cookie })
    storage.now('fails')
    expect(brief(await own.ask('DELETE', '/auth/token/alice'))).toEqual(refused(503, 'no room'))
    storage.now('works')
    expect(await own.tokenOf('alice')).toBe(0)
    expect(await commentWith(own, ACCESS_TOKEN)).toBe(404)
  })
})

/** The status of a comment with this bearer: 401 if it does not work, what the code host answers if it does. */
async function commentWith({ relay }: Pick<Rig, 'relay'>, bearer: string): Promise<number> {
  const answer = await fetch(`${relay.address}/api/comment`, {
    method: 'POST',
    headers: { authorization: `Bearer ${bearer}`, 'content-type': JSON_TYPE },
    body: JSON.stringify({ owner: 'octo', repo: 'demo', issueNumber: 1, body: 'hello' }),
  })
  await answer.arrayBuffer()
  return answer.status
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
