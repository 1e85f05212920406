import { describe, expect, it } from 'vitest'
import { place } from '../kit/place.js'
import { checkOf } from './example.js'
import { fresh } from './fixture.js'

const here = fresh(() =>
  place({
    host: 'gitlab',
    gitlab: { path: '/git' },
    env: { RELAY_CLIENT_ID: undefined, RELAY_CLIENT_SECRET: undefined },
  }),
)
const reveal = async (name: string) => (await here.run('config', '--reveal', name)).out.trim()

describe('relay setup at a GitLab', () => {
  it("registers the application with an administrator's token, which it forgets", async () => {
    const token = here.gitlab.token({ username: 'root' })
    const { code, out, err } = await here.runWith({ stdin: `${token}\n` }, 'setup')
    expect(code).toBe(0)
    const { client } = here.gitlab.state.oauth
    expect(client.redirectUris).toEqual(['http://127.0.0.1:8787/auth/gitlab/callback'])
    expect([await reveal('clientId'), await reveal('clientSecret')]).toEqual([client.id, client.secret])
    expect(out + err).not.toContain(token)
    expect(await here.run('token')).toMatchObject({ code: 4, out: '' })
  })

  it('names the way by hand to everybody else, and takes what the page gave', async () => {
    const { code, err } = await here.runWith({ stdin: `${here.gitlab.token()}\n` }, 'setup')
    expect([code, err]).toEqual([
      8,
      expect.stringContaining('GitLab lets only administrators register an application'),
    ])
    const { id, secret } = here.gitlab.state.oauth.client
    const byHand = await here.runWith({ stdin: `\n${id}\n${secret}\n` }, 'setup')
    expect(byHand.code).toBe(0)
    expect([await reveal('clientId'), await reveal('clientSecret')]).toEqual([id, secret])
  })
})

describe('relay doctor at a GitLab', () => {
  it.each<[string, Record<string, string>, string]>([
    ['known', {}, ' is GitLab; '],
    ['known with its secret', {}, ' knows it; sign-in returns'],
    ['no such id', { RELAY_CLIENT_ID: 'f'.repeat(64) }, ' does not know client '],
    ['another secret', { RELAY_CLIENT_SECRET: 'gloas-another' }, ' does not know client '],
  ])('knows it by its API, and asks there for the client: %s', async (_, other, says) => {
    const { id, secret } = here.gitlab.state.oauth.client
    const host = await checkOf(here, 'code host', {
      RELAY_CLIENT_ID: id,
      RELAY_CLIENT_SECRET: secret,
      ...other,
    })
    expect(JSON.stringify(host)).toContain(here.gitlab.url + says)
  })

  it('says that an address is that of a GitLab where another is set', async () => {
    const { out, err } = await here.runWith({ env: { RELAY_PROVIDER: 'gitea' } }, 'doctor')
    expect(out + err).toMatch(/is GitLab, not gitea/)
    expect(out + err).toMatch(/RELAY_PROVIDER=gitlab/)
  })
})
