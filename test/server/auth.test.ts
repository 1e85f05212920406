import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { CLIENT_ID } from '../helpers/authorization-server.js'
import { brief, PRIVATE, refused, startRelay } from './auth-rig.js'

describe('GET /auth/{provider}', () => {
  it.each(['/auth/github', '/auth/provider'])('redirects from %s and sets the cookie', async (path) => {
    await using relay = await startRelay()
    const { status, headers, body } = await relay.ask('GET', `${path}?userId=alice`)

    const location = new URL(headers['location'] ?? '')
    const query = Object.fromEntries(location.searchParams)
    expect([status, body]).toEqual([302, ''])
    expect(headers).toMatchObject(PRIVATE)
    expect(location.origin + location.pathname).toBe(`${relay.rig.server.url}/login/oauth/authorize`)
    expect(query).toMatchObject({ client_id: CLIENT_ID, redirect_uri: `${relay.url}/auth/github/callback` })
    const name = `relay_oauth_${sha256(query['state'] ?? '').slice(0, 8)}`
    expect(headers['set-cookie']).toMatch(
      new RegExp(`^${name}=[\\w-]{43}; Max-Age=600; Path=/auth/github/callback; HttpOnly; SameSite=Lax$`),
    )
    expect(Object.keys(await relay.rig.contents())).toEqual([`oauth-state:${query['state']}`])
  })

  it('sets a Secure cookie when the public address is https', async () => {
    await using relay = await startRelay({ redirectUri: () => 'https://relay.test/a/auth/github/callback' })
    const { headers } = await relay.ask('GET', '/auth/github?userId=alice')
    expect(headers['set-cookie']).toMatch(
      /; Path=\/a\/auth\/github\/callback; HttpOnly; Secure; SameSite=Lax$/,
    )
  })

  it.each([
    ['no userId', '', 'Missing userId'],
    ['another parameter', '?user=alice', 'Missing userId'],
    ['a name that only begins so', '?userIds=alice&xuserId=alice', 'Missing userId'],
    ['nothing after the name', '?userId', 'Missing userId'],
    ['an empty one', '?userId=', 'Missing userId'],
    ['two', '?userId=alice&userId=bob', 'Invalid userId'],
    ['two the same', '?userId=alice&userId=alice', 'Invalid userId'],
    ['two empty ones', '?userId=&userId', 'Invalid userId'],
    ['257 bytes', `?userId=${'a'.repeat(257)}`, 'Invalid userId'],
    ['65 times four bytes', `?userId=${'%F0%9F%98%80'.repeat(65)}`, 'Invalid userId'],
    ['a space', '?userId=a%20b', 'Invalid userId'],
    ['a plus, which is a space', '?userId=a+b', 'Invalid userId'],
    ['a slash', '?userId=a%2Fb', 'Invalid userId'],
    ['a bare slash', '?userId=a/b', 'Invalid userId'],
    ['a control character', '?userId=a%00b', 'Invalid userId'],
    ['one dot', '?userId=.', 'Invalid userId'],
    ['two dots', '?userId=%2e%2e', 'Invalid userId'],
    ['broken percent-encoding', '?userId=%zz', 'Invalid userId'],
    ['half a percent-encoding', '?userId=a%2', 'Invalid userId'],
    ['bytes that are not UTF-8', '?userId=%FF', 'Invalid userId'],
    ['half a character', '?userId=%ED%A0%BD', 'Invalid userId'],
  ])('refuses %s', async (_, query, error) => {
    await using relay = await startRelay()
    expect(brief(await relay.ask('GET', `/auth/github${query}`))).toEqual(refused(400, error))
    expect(await relay.rig.contents()).toEqual({})
  })

  it.each(['__proto__', 'constructor', 'a%25b', '%25zz', 'a:b', '%F0%9F%98%80'.repeat(64), 'a'.repeat(256)])(
    'accepts the userId %s unchanged',
    async (userId) => {
      await using relay = await startRelay()
      const { status } = await relay.ask('GET', `/auth/github?x=1&userId=${userId}&y=%`)
      expect(status).toBe(302)
      const [pending] = Object.values(await relay.rig.contents())
      expect(pending).toMatchObject({ userId: decodeURIComponent(userId) })
    },
  )

  it('names what to set when no client is configured', async () => {
    await using relay = await startRelay({ client: undefined })
    expect(brief(await relay.ask('GET', '/auth/github?userId=alice'))).toEqual(
      refused(503, 'Sign-in is not configured: set RELAY_CLIENT_ID and RELAY_CLIENT_SECRET'),
    )
  })

  it('answers 503 when the sign-in cannot be stored', async () => {
    await using relay = await startRelay()
    relay.rig.broken.add('put')
    expect(brief(await relay.ask('GET', '/auth/github?userId=alice'))).toEqual(
      refused(503, 'The store failed'),
    )
  })

  it.each([
    ['GET', '/auth/gitea?userId=alice', 404, undefined],
    ['GET', '/auth/gitea/callback', 404, undefined],
    ['GET', '/auth', 404, undefined],
    ['GET', '/auth/token', 404, undefined],
    ['DELETE', '/auth/token', 404, undefined],
    ['DELETE', '/auth/token/a/b', 404, undefined],
    ['POST', '/auth/github', 405, 'GET, HEAD'],
    ['DELETE', '/auth/provider', 405, 'GET, HEAD'],
    ['POST', '/auth/github/callback', 405, 'GET, HEAD'],
    ['GET', '/auth/token/alice', 405, 'DELETE'],
    ['POST', '/auth/token/alice', 405, 'DELETE'],
  ])('is not confused with similar paths: %s %s', async (method, path, status, allow) => {
    await using relay = await startRelay()
    const answer = await relay.ask(method, path)
    expect([answer.status, answer.headers['allow']]).toEqual([status, allow])
    expect(answer.body).toBe(JSON.stringify({ error: status === 404 ? 'Not found' : 'Method not allowed' }))
  })
})

describe('GET /auth/{provider}/callback', () => {
  it('returns to the application, signed in, and deletes the cookie', async () => {
    await using relay = await startRelay()
    const { back, cookie } = await relay.agreed()
    const { status, headers, body } = await relay.ask('GET', back, { Cookie: `other=1; ${cookie}` })
    expect([status, body]).toEqual([302, ''])
    expect(headers).toMatchObject({
      ...PRIVATE,
      location: `${relay.url}/?auth=success&userId=alice`,
      'set-cookie': `${cookie.split('=')[0]}=; Max-Age=0; Path=/auth/github/callback`,
    })
    expect((await relay.rig.tokens.get('alice'))?.origin).toBe(relay.rig.server.url)
    expect(Object.keys(await relay.rig.contents()).filter((key) => key.startsWith('oauth-state:'))).toEqual(
      [],
    )
  })

  it('works under its alias too', async () => {
    await using relay = await startRelay()
    const { query, cookie } = await relay.agreed()
    const { headers } = await relay.ask('GET', `/auth/provider/callback?${query.toString()}`, {
      Cookie: cookie,
    })
    expect(headers['location']).toBe(`${relay.url}/?auth=success&userId=alice`)
  })

  it('signs in at Gitea, which names no scope and whose tokens are JWTs', async () => {
    await using relay = await startRelay({ name: 'gitea' })
    const accessToken = `${'eyJhbGciOiJSUzI1NiJ9'.repeat(40)}.e30.c2ln`
    relay.rig.server.grant = { access_token: accessToken, expires_in: 3600, refresh_token: 'e30.e30.e30' }
    const { query, cookie } = await relay.agreed()
    query.delete('iss')
    const back = `/auth/gitea/callback?${query.toString()}`
    const { headers } = await relay.ask('GET', back, { Cookie: cookie })
    expect(headers['location']).toBe(`${relay.url}/?auth=success&userId=alice`)
    expect(await relay.rig.tokens.findByBearer(accessToken)).toEqual({
      userId: 'alice',
      accessToken,
      expiresAt: relay.rig.time.now + 3_600_000,
      origin: relay.rig.server.url,
    })
  })

  it.each([
    ['https://app.test', 'https://app.test/?auth=success&userId=%F0%9F%98%80%26%23'],
    ['https://app.test/a?', 'https://app.test/a?auth=success&userId=%F0%9F%98%80%26%23'],
    [
      'https://app.test/a?x=%20+&flag&auth=old#/home?y=1',
      'https://app.test/a?x=%20+&flag&auth=old&auth=success&userId=%F0%9F%98%80%26%23#/home?y=1',
    ],
  ])('adds the outcome to the query of %s', async (baseUrl, expected) => {
    await using relay = await startRelay({ baseUrl })
    const { back, cookie } = await relay.agreed('😀&#')
    expect((await relay.ask('GET', back, { Cookie: cookie })).headers['location']).toBe(expected)
  })

  it('refuses another browser, and then the first one too', async () => {
    await using relay = await startRelay()
    const { back, cookie } = await relay.agreed()
    const invalid = `${relay.url}/?auth=error&reason=invalid_state`
    const stranger = await relay.ask('GET', back)
    expect(stranger.headers['location']).toBe(invalid)
    expect(stranger.headers['set-cookie']).toBeUndefined()
    expect((await relay.ask('GET', back, { Cookie: cookie })).headers['location']).toBe(invalid)
    expect(await relay.rig.contents()).toEqual({})
  })

  it('lets one of many visits with one state succeed', async () => {
    await using relay = await startRelay()
    const { back, cookie } = await relay.agreed()
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => relay.ask('GET', back, { Cookie: cookie })),
    )
    const outcomes = answers.map(({ headers }) => new URL(headers['location'] ?? '').search).toSorted()
    expect(outcomes).toEqual([
      ...Array<string>(9).fill('?auth=error&reason=invalid_state'),
      '?auth=success&userId=alice',
    ])
    expect(relay.rig.server.requests).toHaveLength(1)
  })

  it('completes two sign-ins of one browser in either order', async () => {
    await using relay = await startRelay()
    const alice = await relay.agreed('alice')
    const bob = await relay.agreed('bob')
    const Cookie = `${alice.cookie}; ${bob.cookie}`
    expect((await relay.ask('GET', bob.back, { Cookie })).headers['location']).toMatch(/success&userId=bob$/)
    expect((await relay.ask('GET', alice.back, { Cookie })).headers['location']).toMatch(
      /success&userId=alice$/,
    )
  })
})

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
