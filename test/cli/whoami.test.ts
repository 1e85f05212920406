import { describe, expect, it } from 'vitest'
import { keepToken, shell, startAlone, startServed } from './rig.js'

describe('relay whoami', () => {
  it('says whose token it is, where it is kept and when it ends', async () => {
    await using served = await startServed()
    const { code, out, err } = await served.shell.run(['whoami'])
    expect({ code, err }).toEqual({ code: 0, err: '' })
    expect(out).toMatch(
      new RegExp(
        `^account    octo\ncode host  ${served.sandbox.url}\nuser       ada\ntoken      in ${served.shell.home}/default, ends \\S+Z\n$`,
      ),
    )
  })

  it('says so when the code host knows the token no more, exit 4', async () => {
    await using alone = await startAlone()
    await keepToken(alone.shell, { accessToken: 'gone', origin: alone.sandbox.url })
    expect(await alone.shell.run(['whoami'])).toEqual({
      code: 4,
      out: '',
      err: 'error: Invalid or expired token\n',
    })
  })

  it('says that the code host failed, exit 8', async () => {
    await using alone = await startAlone()
    alone.sandbox.faults.next('user', '502')
    const { code, out } = await alone.shell.run(['whoami'])
    expect({ code, out }).toEqual({ code: 8, out: '' })
  })

  it('names the command that signs in, exit 4', async () => {
    expect(await shell().run(['whoami'])).toEqual({
      code: 4,
      out: '',
      err: 'error: ada is not signed in, or no longer; sign in: relay login\n',
    })
  })
})
