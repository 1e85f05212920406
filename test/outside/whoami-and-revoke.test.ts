import { describe, expect, it } from 'vitest'
import { endToken } from '../kit/pages.js'
import { CLIENT, place } from '../kit/place.js'
import { fails, prints } from '../kit/run.js'

describe('relay whoami', () => {
  it('prints the account, where the token is stored and when it expires', async () => {
    await using here = await place({ signedIn: true })
    await here.serve()
    const { code, out, err } = await here.run('whoami')
    expect({ code, err }).toEqual({ code: 0, err: '' })
    expect(out).toMatch(
      new RegExp(
        `^account    octo\ncode host  ${here.sandbox.url}\nuser       ada\ntoken      in ${here.home}/default, expires \\S+Z\n$`,
      ),
    )
  })

  it('reports that the code host no longer knows the token, exit 4', async () => {
    await using here = await place()
    await endToken(here.sandbox.url, CLIENT, await here.useToken())
    expect(await here.run('whoami')).toEqual(fails(4, 'Invalid or expired token'))
  })

  it('reports that the code host failed, exit 8', async () => {
    await using here = await place({ signedIn: true })
    here.sandbox.faults.next('user', '502')
    expect(await here.run('whoami')).toEqual(
      fails(8, `Could not get the account of ada: The sandbox failed (502)`),
    )
  })
})

describe('relay revoke', () => {
  it('ends the token here and at the code host', async () => {
    await using here = await place()
    const { address } = await here.serve()
    const token = await here.signIn()
    expect(await here.run('revoke')).toEqual({
      code: 0,
      out: '',
      err: `the token of ada is deleted here, and revoked at ${here.sandbox.url}\n`,
    })
    expect((await here.run('token')).code).toBe(4)
    const headers = { Authorization: `Bearer ${token}` }
    expect((await fetch(`${here.sandbox.url}/api/v3/user`, { headers })).status).toBe(401)
    const body = JSON.stringify({ owner: 'octo', repo: 'demo', issueNumber: 1, body: 'x' })
    const call = { method: 'POST', headers: { ...headers, 'Content-Type': 'application/json' }, body }
    expect((await fetch(`${address}/api/comment`, call)).status).toBe(401)
  })

  it('leaves the code host alone with --local', async () => {
    await using here = await place()
    const token = await here.useToken()
    expect(await here.run('revoke', '--local', '--json')).toEqual(
      prints('{"v":1,"user":"ada","removed":true,"upstream":"skipped"}\n'),
    )
    const headers = { Authorization: `Bearer ${token}` }
    expect((await fetch(`${here.sandbox.url}/api/v3/user`, { headers })).status).toBe(200)
  })

  it('is exit 8 when the code host cannot be reached, and the token is deleted here all the same', async () => {
    await using here = await place({ signedIn: true })
    await here.sandbox[Symbol.asyncDispose]()
    const { code, out, err } = await here.run('revoke')
    expect({ code, out }).toEqual({ code: 8, out: '' })
    expect(err).toContain(
      `error: The token of ada is deleted here, but ${here.sandbox.url} did not revoke it: `,
    )
    expect((await here.run('token')).code).toBe(4)
  })

  it('reports that there was nothing to revoke', async () => {
    await using here = await place({ host: 'none' })
    expect(await here.run('revoke')).toEqual({
      code: 0,
      out: '',
      err: 'ada was not signed in, so there was nothing to revoke\n',
    })
  })

  it('names what is missing to revoke at the code host', async () => {
    await using here = await place({ signedIn: true })
    const env = { RELAY_CLIENT_ID: undefined, RELAY_CLIENT_SECRET: undefined }
    const { code, err } = await here.runWith({ env }, 'revoke')
    expect(code).toBe(8)
    expect(err).toBe(
      `error: The token of ada is deleted here, but it is still valid at ${here.sandbox.url}: revoking it there needs RELAY_CLIENT_ID and RELAY_CLIENT_SECRET\n`,
    )
  })
})
