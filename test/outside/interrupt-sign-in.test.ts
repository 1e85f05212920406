import { describe, expect, it } from 'vitest'
import { asked, hurryDevice, LATE, SLOW } from '../kit/code-host.js'
import { addressOf, device, deviceOf, register } from '../kit/pages.js'
import { type Place, place } from '../kit/place.js'
import type { Ended, Running } from '../kit/run.js'

/** How a one-shot command ends after Ctrl-C. */
const INTERRUPTED = { code: 130, signal: null, out: '' }

/** Presses Ctrl-C once `reached` has resolved. */
async function interrupt(command: Running, reached: Promise<unknown>): Promise<Ended> {
  await reached
  return command.stop('SIGINT')
}

describe('Ctrl-C during relay setup', () => {
  /** A place whose user has no client yet. */
  const start = (): Promise<Place> =>
    place({ env: { RELAY_CLIENT_ID: undefined, RELAY_CLIENT_SECRET: undefined } })
  /** The client that the profile has. */
  const client = async (user: Place): Promise<string> =>
    (await user.run('config', '--json')).out.match(/Iv23\w+/)?.[0] ?? ''
  const setsUp = async (user: Place, ...flags: string[]): Promise<void> => {
    const setup = user.start('setup', '--no-browser', ...flags)
    await register(await addressOf(setup))
    expect((await setup.ended).code).toBe(0)
  }

  it('while the App is registered: its secrets, which are shown once, are stored', async () => {
    await using user = await start()
    user.sandbox.faults.next('convert', LATE)
    const setup = user.start('setup', '--no-browser')
    const page = register(await addressOf(setup))
    const ended = await interrupt(setup, asked(user.sandbox, /conversions$/))
    expect(ended).toMatchObject({ ...INTERRUPTED, err: expect.stringContaining('Stored the client Iv23') })
    expect(await (await page).text()).toContain('relay has stored its client')
    const before = await client(user)
    expect(before).not.toBe('')
    await setsUp(user, '--yes')
    expect(await client(user)).not.toBe(before)
  })
})

describe('Ctrl-C during relay login --device', () => {
  it.each([
    ['while the codes are asked for', 'device', SLOW, /^POST .*\/device\/code$/],
    ['while the user enters the code', undefined, undefined, undefined],
    ['while the token is asked for', 'token', SLOW, /^POST .*\/access_token$/],
  ] as const)(
    '%s: the user is not signed in, and the next one works',
    async (_, operation, fault, request) => {
      await using user = await place()
      if (operation !== 'device') await hurryDevice(user.sandbox)
      if (operation) user.sandbox.faults.next(operation, fault)
      const login = user.start('login', '--device')
      const reached = request ? asked(user.sandbox, request) : deviceOf(login)
      expect(await interrupt(login, reached)).toMatchObject(INTERRUPTED)
      expect(await user.run('whoami')).toMatchObject({ code: 4 })
      user.sandbox.faults.clear()
      await hurryDevice(user.sandbox)
      const again = user.start('login', '--device')
      const { address, code } = await deviceOf(again)
      await device(address, code)
      expect(await again.ended).toMatchObject({
        code: 0,
        err: expect.stringContaining('signed in as octo'),
      })
    },
  )
})
