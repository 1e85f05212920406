import { describe, expect, it } from 'vitest'
import { keepToken, shell, startAlone, startServed } from '../rig.js'

describe('relay whoami', () => {
  it('prints the account, where the token is stored and when it expires', async () => {
    await using served = await startServed()
    const { code, out, err } = await served.shell.run(['whoami'])
    expect({ code, err }).toEqual({ code: 0, err: '' })
    expect(out).toMatch(
      new RegExp(
        `^account    octo\ncode host  ${served.sandbox.url}\nuser       ada\ntoken      in ${served.shell.home}/default, expires \\S+Z\n$`,
      ),
    )
  })

  it('reports that the code host no longer knows the token, exit 4', async () => {
    await using alone = await startAlone()
    await keepToken(alone.shell, { accessToken: 'gone', origin: alone.sandbox.url })
    expect(await alone.shell.run(['whoami'])).toEqual({
      code: 4,
      out: '',
      err: 'error: Invalid or expired token\n',
    })
  })

  it('reports that the code host failed, exit 8', async () => {
    await using alone = await startAlone()
    alone.sandbox.faults.next('user', '502')
    expect(await alone.shell.run(['whoami'])).toEqual({
      code: 8,
      out: '',
      err: `error: Could not get the account of ada: The sandbox failed (502)\n`,
    })
  })

  it('names the command that signs in, exit 4', async () => {
    expect(await shell().run(['whoami'])).toEqual({
      code: 4,
      out: '',
      err: 'error: ada is not signed in, or the sign-in has ended. Run relay login\n',
    })
  })
})
