import { describe, expect, it } from 'vitest'
import { Tokens } from '../../../src/tokens/tokens.js'
import { signIn, signInAt } from '../../helpers/sign-in.js'
import { type Alone, keepToken, profileStore, startAlone, startServed, USER } from '../rig.js'

const COMMENT = ['comment', 'octo/demo#1', 'hello']
const SINCE = String.raw`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d`

/** What the first action after a sign-in as octo says that no relay login made. */
function notice(url: string): RegExp {
  return new RegExp(
    `^warning: Acting as octo at ${url}: ada was signed in at ${SINCE}, and not by relay login\\. ` +
      'If that is not your account, run relay revoke\\.\n$',
  )
}

/** Signs {@link USER} in as over HTTP, with no instance running. */
async function signInUnconfirmed({ shell, sandbox, grant }: Alone, accessToken = grant.access_token) {
  await keepToken(shell, { accessToken, origin: sandbox.url, unconfirmedSince: Date.now() })
}

describe('the first action after a sign-in that relay login did not make', () => {
  it('prints the account that it uses, once, on stderr', async () => {
    await using served = await startServed()
    const { shell, serving, sandbox } = served
    expect(await shell.run(COMMENT)).toMatchObject({ code: 0, err: '' })
    await signIn(serving.url, USER)
    const first = await shell.run([...COMMENT, '--json', '-q'])
    expect(first).toMatchObject({ code: 0, err: expect.stringMatching(notice(sandbox.url)) })
    expect(JSON.parse(first.out)).toMatchObject({ v: 1 })
    expect(await shell.run(['react', 'octo/demo#1', 'heart'])).toMatchObject({ code: 0, err: '' })
    // And again after the next one.
    await signIn(serving.url, USER)
    expect((await shell.run(['merge', 'octo/demo#2'])).err).toMatch(notice(sandbox.url))
  })

  it('prints it before the action, and not for another user or a dry run', async () => {
    await using alone = await startAlone()
    const { shell, sandbox } = alone
    await signInUnconfirmed(alone)
    expect((await shell.run([...COMMENT, '--dry-run'])).err).not.toContain('warning')
    expect(await shell.run(['merge', 'octo/demo#3'])).toMatchObject({
      code: 8,
      err: expect.stringMatching(/^warning: Acting as octo .*\nerror: Not merged: /),
    })
    expect(sandbox.requests.map(({ method }) => method).slice(-3)).toEqual(['GET', 'PUT', 'GET'])
  })

  it('prints it the next time if the code host could not be asked, and acts all the same', async () => {
    await using alone = await startAlone()
    const { shell, sandbox } = alone
    await signInUnconfirmed(alone)
    sandbox.faults.next('user', '502')
    const { code, err } = await shell.run(COMMENT)
    expect({ code, err }).toEqual({
      code: 0,
      err: expect.stringMatching(
        `^warning: ada was signed in at ${SINCE}, and not by relay login; ` +
          'relay could not ask for its account \\(The sandbox failed \\(502\\)\\)\n$',
      ),
    })
    expect((await shell.run(COMMENT)).err).toMatch(notice(sandbox.url))
  })
})

describe('a sign-in counts as known', () => {
  it('when relay whoami has named the account', async () => {
    await using alone = await startAlone()
    const { shell } = alone
    await signInUnconfirmed(alone)
    const { out } = await shell.run(['whoami'])
    expect(out).toMatch(new RegExp(`^account    octo\n(.*\n){3}signed in  at \\S+Z, not by relay login\n$`))
    expect((await shell.run(['whoami'])).out).not.toContain('signed in')
    expect(await shell.run(COMMENT)).toMatchObject({ code: 0, err: '' })
  })

  it('but not after relay whoami --json, which a program reads', async () => {
    await using alone = await startAlone()
    await signInUnconfirmed(alone)
    expect((await alone.shell.run(['whoami', '--json'])).code).toBe(0)
    expect((await alone.shell.run(COMMENT)).err).toMatch(notice(alone.sandbox.url))
  })

  it('not by a login nonce of a stranger', async () => {
    await using served = await startServed()
    const { shell, serving, sandbox } = served
    await signInAt(`${serving.url}/auth/sandbox?userId=${USER}&login=${'stranger'.repeat(4)}`)
    expect((await shell.run(COMMENT)).err).toMatch(notice(sandbox.url))
  })

  it('but not when the code host refuses the token', async () => {
    await using alone = await startAlone()
    await signInUnconfirmed(alone, 'stale')
    expect((await alone.shell.run(COMMENT)).code).toBe(4)
    await using store = await profileStore(alone.shell)
    expect(await new Tokens(store).unconfirmed(USER)).toMatchObject({ since: expect.any(String) })
  })
})
