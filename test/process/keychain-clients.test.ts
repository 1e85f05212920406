import { expect, it } from 'vitest'
import { ownKeyring } from '../kit/keyring.js'
import { describeWith } from '../kit/needs.js'
import { signIn } from '../kit/pages.js'
import { place } from '../kit/place.js'

const SANDBOX = ['--sandbox', '--sandbox-port', '0']
const BUILT = { built: true }

async function statusAt(sandbox: string, token: string): Promise<number> {
  const headers = { Authorization: `Bearer ${token}` }
  return (await fetch(`${sandbox}/api/v3/user`, { headers })).status
}

describeWith('keyring', 'relay serve --store keychain, in a terminal that knows nothing of it', () => {
  it('shows, uses and revokes the token in the keychain', async () => {
    await using keyring = await ownKeyring()
    await using here = await place({ host: 'none', env: keyring.env })
    const program = await here.serveWith(BUILT, ...SANDBOX, '--store', 'keychain')
    const { url, sandbox } = await program.listening()
    await signIn(url, 'ada')
    const found = `Using profile sandbox, which runs at ${url}\n`

    const whoami = await here.runWith(BUILT, 'whoami', '--json')
    expect({ code: whoami.code, err: whoami.err }).toEqual({ code: 0, err: found })
    expect(JSON.parse(whoami.out)).toMatchObject({
      login: 'octo',
      store: 'the keychain, service relay:sandbox',
    })
    expect(await here.runWith(BUILT, 'comment', 'octo/demo#1', 'hello')).toMatchObject({ code: 0 })
    const token = (await here.runWith(BUILT, 'token')).out.trim()
    expect(await statusAt(sandbox, token)).toBe(200)

    expect(await here.runWith({ ...BUILT, env: { RELAY_STORE: 'file' } }, 'token')).toEqual({
      code: 2,
      out: '',
      err: `${found}error: RELAY_STORE is file, but process ${program.pid} serves profile sandbox with --store keychain. Unset the variable, or name another profile with --profile\n`,
    })

    expect(await here.runWith(BUILT, 'revoke')).toEqual({
      code: 0,
      out: '',
      err: `${found}the token of ada is deleted here, and revoked at ${sandbox}\n`,
    })
    expect(await statusAt(sandbox, token)).toBe(401)
    expect(await here.runWith(BUILT, 'token')).toMatchObject({ code: 4, out: '' })
    await program.stop()
    const { out } = await here.runWith(BUILT, 'profiles', '--json')
    expect(JSON.parse(out)).toMatchObject({
      name: 'sandbox',
      sandbox: true,
      store: 'keychain',
      running: null,
    })
  })
})
