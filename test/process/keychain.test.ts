import { randomBytes } from 'node:crypto'
import { expect, it } from 'vitest'
import { contentsOf } from '../kit/folder.js'
import { ownKeyring, startSession, startSilentSession } from '../kit/keyring.js'
import { describeWith } from '../kit/needs.js'
import { signIn } from '../kit/pages.js'
import { place, REPO, USER } from '../kit/place.js'
import { childrenOf, isAlive, processes, readProc } from '../kit/processes.js'

const UNLOCK =
  'Start a keyring in your D-Bus session and unlock it (Debian: gnome-keyring), or use --store file'

async function react(url: string, token: string): Promise<number> {
  const [owner, repo] = REPO.split('/')
  const answer = await fetch(`${url}/api/react`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
    body: JSON.stringify({ owner, repo, issueNumber: 1, content: 'rocket' }),
  })
  return answer.status
}

/** The command lines and environments of all processes, as their own user can read them. */
function everyProcess(): string {
  return processes()
    .map((pid) => readProc(pid, 'cmdline') + readProc(pid, 'environ'))
    .join('\n')
}

describeWith('keyring', 'relay --store keychain', () => {
  it('signs in, acts and signs out, and shows the token to no other program', async () => {
    // Other tests use the keyring too.
    const RELAY_PROFILE = `keychain-${randomBytes(4).toString('hex')}`
    await using here = await place({ store: 'keychain', env: { RELAY_PROFILE } })
    const relay = await here.serveWith({ built: true })
    await relay.says('tokens in the keychain')
    expect((await relay.deliver()).status).toBe(200)
    const { location } = await signIn(relay.address, USER)
    expect(location).toBe(`${relay.address}/?auth=success&userId=${USER}`)

    const { out, ...rest } = await here.runWith({ built: true }, 'token')
    expect(rest).toEqual({ code: 0, err: '' })
    const token = out.trim()
    expect(token).toMatch(/^gho_/)
    expect(await react(relay.address, token)).toBe(200)
    const { out: account } = await here.runWith({ built: true }, 'whoami')
    expect(account).toContain(`in the keychain, service relay:${RELAY_PROFILE}, expires `)

    const shown = everyProcess()
    expect(shown).toContain(RELAY_PROFILE)
    expect(shown).not.toContain(token)
    expect(contentsOf(here.home)).toContain('Design for failure.')
    expect(contentsOf(here.home)).not.toContain(token)

    expect(await here.runWith({ built: true }, 'revoke', '--local')).toEqual({
      code: 0,
      out: '',
      err: `the token of ${USER} is deleted here, and not revoked at the code host\n`,
    })
    expect(await react(relay.address, token)).toBe(401)
    expect(await here.runWith({ built: true }, 'token')).toMatchObject({ code: 4, out: '' })
    const children = childrenOf(relay.pid)
    expect((await relay.stop()).code).toBe(0)
    await expect.poll(() => children.filter((pid) => isAlive(pid))).toEqual([])
  })

  it('receives and lists while it is locked, says what to do, and acts once it is unlocked', async () => {
    await using keyring = await ownKeyring()
    await using here = await place({ env: { ...keyring.env, RELAY_STORE: 'keychain' } })
    const before = await here.serveWith({ built: true })
    await signIn(before.address, USER)
    const { out: token } = await here.runWith({ built: true }, 'token')
    await before.stop()

    await keyring.lock()
    const relay = await here.serveWith({ built: true })
    expect((await relay.deliver({ id: 'while-locked' })).status).toBe(200)
    const { code, out } = await here.runWith({ built: true }, 'log', '--json')
    expect({ code, id: JSON.parse(out).delivery }).toEqual({ code: 0, id: 'while-locked' })
    const began = performance.now()
    const refused = await here.runWith({ built: true }, 'token')
    expect(refused).toEqual({ code: 1, out: '', err: expect.stringMatching(/keychain .*[Uu]nlock it/s) })
    const { location } = await signIn(relay.address, USER)
    expect(location).toBe(`${relay.address}/?auth=error&reason=storage_failed`)
    // Each waits for 5 s at most.
    expect(performance.now() - began).toBeLessThan(12_000)

    await keyring.unlock()
    expect(await here.runWith({ built: true }, 'token')).toEqual({ code: 0, out: token, err: '' })
    expect(await react(relay.address, token.trim())).toBe(200)
    expect((await relay.stop()).code).toBe(0)
  })

  it('continues to serve while D-Bus never answers, and says what to do', async () => {
    await using session = await startSilentSession()
    await using here = await place({ env: { ...session.env, RELAY_STORE: 'keychain' } })
    const relay = await here.serveWith({ built: true })
    const signingIn = signIn(relay.address, USER)
    await session.reached
    const children = childrenOf(relay.pid)
    const token = here.runWith({ built: true }, 'token')
    for (let answers = 0; answers < 100; answers++)
      expect((await fetch(`${relay.address}/health`)).status).toBe(200)
    expect((await relay.deliver()).status).toBe(200)

    const unusable = /The keychain cannot be used: .*Start a keyring in your D-Bus session/
    await relay.says(unusable)
    const { location } = await signingIn
    expect(location).toBe(`${relay.address}/?auth=error&reason=storage_failed`)
    expect(await token).toEqual({ code: 1, out: '', err: expect.stringMatching(unusable) })
    expect((await relay.stop()).code).toBe(0)
    await expect.poll(() => children.filter((pid) => isAlive(pid))).toEqual([])
  })

  it('does not fall back to another store: where there is no keyring it says so, exit 1', async () => {
    await using session = await startSession()
    await using here = await place({ host: 'none', env: { ...session.env, RELAY_STORE: 'keychain' } })
    const argv = ['serve', '--port', '0', '--sandbox', '--sandbox-port', '0']
    expect(await here.runWith({ built: true }, ...argv)).toEqual({
      code: 1,
      out: '',
      err: `error: The keychain cannot be used: The name org.freedesktop.secrets was not provided by any .service files. ${UNLOCK}\n`,
    })
  })
})
