import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { hurryDevice } from '../kit/code-host.js'
import { device, deviceOf } from '../kit/pages.js'
import { hostVariables, type Place, place } from '../kit/place.js'
import { receiver } from '../kit/receiver.js'
import { fails } from '../kit/run.js'

describe('relay login --device', () => {
  let here: Place
  beforeEach(async () => {
    here = await place()
  })
  afterEach(() => here[Symbol.asyncDispose]())

  it('signs in with the code, and needs no client secret next to an instance', async () => {
    const { sandbox } = here
    await hurryDevice(here.sandbox)
    await here.serve()
    const env = { RELAY_CLIENT_ID: undefined, RELAY_CLIENT_SECRET: undefined }
    const running = here.startWith({ env }, 'login', '--device', '--json')
    const { address, code } = await deviceOf(running)
    await device(address, code)
    const ran = await running.ended
    expect(ran.err).toMatch(
      /^Open this address in a browser on any machine, and enter the code:\n\n {2}\S+\/login\/device\n {2}[A-Z]{4}-[A-Z]{4}\n\nWaiting up to 15m for you to do so\. Ctrl-C cancels\.\n$/,
    )
    expect(JSON.parse(ran.out)).toMatchObject({ user: 'ada', login: 'octo', providerUrl: sandbox.url })
    expect((await here.run('token')).out).toMatch(/^gho_\w+\n$/)
    // Named at once, so the first action need not.
    const comment = await here.run('comment', 'octo/demo#1', 'hello')
    expect(comment).toMatchObject({ code: 0, err: '' })
    expect((await here.run('revoke')).err).toContain('and revoked at ')
  })

  it('reports a refusal, exit 4', async () => {
    await hurryDevice(here.sandbox)
    const running = here.start('login', '--device')
    const { address, code: entered } = await deviceOf(running)
    await device(address, entered, 'cancel')
    const { code, out, err } = await running.ended
    expect({ code, out }).toEqual({ code: 4, out: '' })
    expect(err).toContain(`error: Signing in at ${here.sandbox.url} failed: access was denied there\n`)
    expect((await here.run('token')).code).toBe(4)
  })

  it('is chosen where there is no display', async () => {
    const running = here.startWith({ env: { SSH_CONNECTION: '10.0.0.1 22' } }, 'login')
    await deviceOf(running)
    expect(await running.stop('SIGINT')).toMatchObject({
      code: 130,
      err: expect.stringContaining('/login/device'),
    })
  })
})

describe('an app without the device flow', () => {
  it('is named by --device, exit 2; where it was only chosen, the browser is used', async () => {
    await using host = await receiver({
      status: 400,
      body: { error: 'device_flow_disabled', error_description: 'no' },
    })
    const env = {
      ...hostVariables('github', host.url, { id: 'id', secret: 'secret' }),
      RELAY_PORT: '0',
      SSH_CONNECTION: 'x',
    }
    await using here = await place({ host: 'none', env })
    expect(await here.run('login', '--device')).toEqual(
      fails(
        2,
        `Signing in at ${host.url} failed: the OAuth app id does not allow the device flow. Enable it in the app's settings there, or use relay login --with-token`,
      ),
    )
    const running = here.start('login')
    await running.says('Waiting up to 5 minutes')
    const { code, err: said } = await running.stop('SIGINT')
    expect(code).toBe(130)
    expect(said).toMatch(/^Open this address in a browser:\n\n {2}http:\S+&login=/)
  })

  it('is that of a Gitea, exit 2', async () => {
    const url = 'https://git.example.org'
    const env = hostVariables('gitea', url, { id: 'id', secret: 'secret' })
    await using here = await place({ host: 'none', env })
    expect(await here.run('login', '--device')).toEqual(
      fails(2, `${url} has no device flow. Use relay login --no-browser, or relay login --with-token`),
    )
  })

  it('is none at all, exit 2', async () => {
    await using here = await place({ host: 'none' })
    const { code, err } = await here.run('login', '--device')
    expect(code).toBe(2)
    expect(err).toContain('error: Sign-in at https://github.com is not set up. Run relay setup, ')
    expect(await here.run('login', '--device', '--with-token')).toEqual(
      fails(2, '--device and --with-token are two ways to sign in. Give one of them'),
    )
  })
})

it('stores nothing where the API does not say whose token was issued, and names its address, exit 8', async () => {
  const codes = { device_code: 'x', user_code: 'WDJB-MJHT', expires_in: 900, interval: 1 }
  await using host = await receiver(({ path }) => {
    if (path === '/login/device/code')
      return { body: { ...codes, verification_uri: 'http://127.0.0.1:9/login/device' } }
    if (path === '/login/oauth/access_token') return { body: { access_token: 'gho_x', token_type: 'bearer' } }
    return { status: 404, body: { message: 'Not Found' } }
  })
  await using here = await place({
    host: 'none',
    env: hostVariables('github', host.url, { id: 'id', secret: 'secret' }),
  })
  const { code, err } = await here.run('login', '--device')
  expect(code).toBe(8)
  expect(err).toContain(
    `error: a token was issued, but the API at ${host.url}/api/v3 did not say whose it is: `,
  )
  expect((await here.run('token')).code).toBe(4)
})
