import { describe, expect, it } from 'vitest'
import { awaitLogin } from '../../src/oauth/login.js'
import { brief, refused, startRelay } from './auth-rig.js'

const LOGIN = 'a-login_0123456789'

describe('GET /auth/{provider}?login=', () => {
  it('leaves the outcome for who waits for it', async () => {
    await using relay = await startRelay()
    const { headers } = await relay.ask('GET', `/auth/github?userId=alice&login=${LOGIN}`)
    const query = relay.rig.server.approve(headers['location'] ?? '')
    const [Cookie = ''] = headers['set-cookie']?.split(';') ?? []
    const waiting = awaitLogin(relay.rig.parts.store, LOGIN)
    const back = await relay.ask('GET', `/auth/github/callback?${query.toString()}`, { Cookie })
    expect(back.headers['location']).toBe(`${relay.url}/?auth=success&userId=alice`)
    expect(await waiting).toEqual({ auth: 'success', userId: 'alice' })
    // The provider learns nothing of it.
    expect(headers['location']).not.toContain(LOGIN)
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

  it('is looked at after the userId', async () => {
    await using relay = await startRelay()
    expect(brief(await relay.ask('GET', '/auth/github?login=x'))).toEqual(refused(400, 'Missing userId'))
  })
})
