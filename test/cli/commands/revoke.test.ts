import { describe, expect, it } from 'vitest'
import { shell, startAlone, startServed } from '../rig.js'

describe('relay revoke', () => {
  it('ends the token here and at the code host', async () => {
    await using served = await startServed()
    const token = (await served.shell.run(['token'])).out.trim()
    expect(await served.shell.run(['revoke'])).toEqual({
      code: 0,
      out: '',
      err: `the token of ada is deleted here, and revoked at ${served.sandbox.url}\n`,
    })
    expect((await served.shell.run(['token'])).code).toBe(4)
    const headers = { Authorization: `Bearer ${token}` }
    expect((await fetch(`${served.sandbox.url}/api/v3/user`, { headers })).status).toBe(401)
    const body = JSON.stringify({ owner: 'octo', repo: 'demo', issueNumber: 1, body: 'x' })
    const call = { method: 'POST', headers: { ...headers, 'Content-Type': 'application/json' }, body }
    expect((await fetch(`${served.serving.url}/api/comment`, call)).status).toBe(401)
  })

  it('leaves the code host alone with --local', async () => {
    await using alone = await startAlone()
    expect(await alone.shell.run(['revoke', '--local', '--json'])).toEqual({
      code: 0,
      out: '{"v":1,"user":"ada","removed":true,"upstream":"skipped"}\n',
      err: '',
    })
    const headers = { Authorization: `Bearer ${alone.grant.access_token}` }
    expect((await fetch(`${alone.sandbox.url}/api/v3/user`, { headers })).status).toBe(200)
  })

  it('is exit 8 when the code host cannot be reached, and the token is deleted here all the same', async () => {
    await using alone = await startAlone()
    await alone.sandbox[Symbol.asyncDispose]()
    const { code, out, err } = await alone.shell.run(['revoke'])
    expect({ code, out }).toEqual({ code: 8, out: '' })
    expect(err).toContain(
      `error: The token of ada is deleted here, but ${alone.sandbox.url} did not revoke it: `,
    )
    expect((await alone.shell.run(['token'])).code).toBe(4)
  })

  it('reports that there was nothing to revoke', async () => {
    expect(await shell().run(['revoke'])).toEqual({
      code: 0,
      out: '',
      err: 'ada was not signed in, so there was nothing to revoke\n',
    })
  })

  it('names what is missing to revoke at the code host', async () => {
    await using alone = await startAlone()
    const { RELAY_CLIENT_ID: _, RELAY_CLIENT_SECRET: __, ...env } = alone.shell.env
    const { code, err } = await shell(env, alone.shell.home).run(['revoke'])
    expect(code).toBe(8)
    expect(err).toBe(
      `error: The token of ada is deleted here, but it is still valid at ${alone.sandbox.url}: revoking it there needs RELAY_CLIENT_ID and RELAY_CLIENT_SECRET\n`,
    )
  })
})
