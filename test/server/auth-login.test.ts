import { describe, expect, it } from 'vitest'
import { awaitLogin } from '../../src/oauth/login.js'
import { brief, refused, startRelay } from './auth-rig.js'

const LOGIN = 'a-login_0123456789'

describe('GET /auth/{provider}?login=', () => {
  it('publishes the outcome for the waiting program', async () => {
    await using relay = await startRelay()
    const { headers } = await relay.ask('GET', `/auth/github?userId=alice&login=${LOGIN}`)
    const query = relay.rig.server.approve(headers['location'] ?? '')
    const [Cookie = ''] = headers['set-cookie']?.split(';') ?? []
    const waiting = awaitLogin(relay.rig.parts.store, LOGIN)
    const back = await relay.ask('GET', `/auth/github/callback?${query.toString()}`, { Cookie })
    expect(back.headers['location']).toBe(`${relay.url}/?auth=success&userId=alice`)
    expect(await waiting).toEqual({ auth: 'success', userId: 'alice' })
    // The provider does not get it.
    expect(headers['location']).not.toContain(LOGIN)
  })

  it('publishes a Cancel without state and error at once, and deletes the cookie', async () => {
    await using relay = await startRelay({ name: 'gitea' })
    const { headers } = await relay.ask('GET', `/auth/gitea?userId=alice&login=${LOGIN}`)
    const [Cookie = ''] = headers['set-cookie']?.split(';') ?? []
    const waiting = awaitLogin(relay.rig.parts.store, LOGIN)
    const back = await relay.ask('GET', '/auth/gitea/callback', { Cookie: `a=b; ${Cookie}` })
    expect(back.headers['location']).toBe(`${relay.url}/?auth=error&reason=access_denied`)
    const [name = ''] = Cookie.split('=')
    expect(back.headers['set-cookie']).toBe(`${name}=; Max-Age=0; Path=/auth/gitea/callback`)
    expect(await waiting).toEqual({ auth: 'error', reason: 'access_denied' })
    expect(await relay.rig.contents()).toEqual({})
  })

  it.each([
    ['an empty one', 'login='],
    ['nothing after the name', 'login'],
    ['a short one', 'login=0123456789abcde'],
    ['a long one', `login=${'a'.repeat(65)}`],
    ['two', `login=${LOGIN}&login=${LOGIN}`],
    ['two, one of them empty', `login=${LOGIN}&login=`],
    ['one with a comma', `login=${LOGIN},`],
    ['percent-encoding', `login=${LOGIN}%41`],
    ['another alphabet', `login=${LOGIN}=`],
    ['a plus', `login=${LOGIN}+`],
  ])('refuses %s', async (_, query) => {
    await using relay = await startRelay()
    expect(brief(await relay.ask('GET', `/auth/github?userId=alice&${query}`))).toEqual(
      refused(400, 'Invalid login'),
    )
    expect(await relay.rig.contents()).toEqual({})
  })

  it('is checked after the userId', async () => {
    await using relay = await startRelay()
    expect(brief(await relay.ask('GET', '/auth/github?login=x'))).toEqual(refused(400, 'Missing userId'))
  })
})
