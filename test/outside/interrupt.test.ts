import { beforeEach, describe, expect, it } from 'vitest'
import { asked, hurryDevice, LATE, NOW, repository, SLOW } from '../kit/code-host.js'
import { addressOf, device, deviceOf, register } from '../kit/pages.js'
import { place } from '../kit/place.js'
import { closedPort } from '../kit/ports.js'
import type { Ended, Running } from '../kit/run.js'
import { objects } from './example.js'
import { fresh } from './fixture.js'

/** How a one-shot command ends after Ctrl-C. */
const INTERRUPTED = { code: 130, signal: null, out: '' }

/** Presses Ctrl-C once `reached` has resolved. */
async function interrupt(command: Running, reached: Promise<unknown>): Promise<Ended> {
  await reached
  return command.stop('SIGINT')
}

describe('Ctrl-C', () => {
  const here = fresh(() => place({ signedIn: true }))
  const demo = fresh(() => repository(here.sandbox))
  const run = (line: string) => here.run(...line.split(' '))

  /** Runs a command, and presses Ctrl-C during the request, which the sandbox answers too late. */
  async function interruptAt(
    line: string,
    operation: 'hook' | 'deliveries' | 'redeliver',
    faults: readonly (typeof SLOW | typeof LATE | undefined)[],
    request: RegExp,
  ): Promise<Ended> {
    const since = here.sandbox.requests.length
    for (const fault of faults) here.sandbox.faults.next(operation, fault ?? NOW)
    const ended = await interrupt(here.start(...line.split(' ')), asked(here.sandbox, request, since))
    here.sandbox.faults.clear()
    return ended
  }

  /** The addresses of the hooks that `relay hook list` shows. */
  const listed = async () => objects(await run('hook list --json')).map(({ url }) => url)
  const urls = async (): Promise<string[]> => (await demo.hooks()).map(({ url }) => url)

  const ADDRESS = 'http://127.0.0.1:9/webhook'
  const ADD = `hook add octo/demo --url ${ADDRESS}`
  const REMOVE = 'hook remove octo/demo'

  it.each([
    ['while it reads the hooks', [SLOW], /^GET .*\/hooks$/, []],
    ['before the code host makes the hook', [undefined, SLOW], /^POST .*\/hooks$/, []],
    ['after the code host made the hook', [undefined, LATE], /^POST .*\/hooks$/, [ADDRESS]],
  ] as const)('during relay hook add, %s: nothing is there that hook list does not show', async (...row) => {
    const [, faults, request, made] = row
    expect(await interruptAt(ADD, 'hook', faults, request)).toMatchObject(INTERRUPTED)
    expect(await urls()).toEqual(made)
    expect(await listed()).toEqual(expect.arrayContaining([...made]))
    expect(await run(ADD)).toMatchObject({ code: 0 })
    expect([await urls(), await listed()]).toEqual([[ADDRESS], [ADDRESS]])
  })

  it.each([
    ['while it reads the hooks', [SLOW], /^GET .*\/hooks$/, [ADDRESS]],
    ['before the code host removes the hook', [undefined, SLOW], /^DELETE /, [ADDRESS]],
    ['after the code host removed the hook', [undefined, LATE], /^DELETE /, []],
  ] as const)('during relay hook remove, %s: the next one removes the rest', async (...row) => {
    const [, faults, request, left] = row
    await run(ADD)
    expect(await interruptAt(REMOVE, 'hook', faults, request)).toMatchObject(INTERRUPTED)
    expect([await urls(), await listed()]).toEqual([left, [ADDRESS]])
    expect((await run(REMOVE)).code).toBe(left.length > 0 ? 0 : 6)
    expect([await urls(), await listed()]).toEqual([[], []])
  })

  it.each([
    ['while it reads the hooks', [SLOW], /^GET .*\/hooks$/],
    ['while it asks for the ping', [undefined, LATE], /^POST .*\/pings$/],
  ] as const)('during relay hook test, %s: the next one works', async (_, faults, request) => {
    const serving = await here.serve('--hook', 'octo/demo')
    await serving.object({ type: 'hook', state: 'ready' })
    expect(await interruptAt('hook test octo/demo', 'hook', faults, request)).toMatchObject(INTERRUPTED)
    expect((await run('hook test octo/demo')).out).toContain('arrived')
  })

  describe('during relay catch-up', () => {
    beforeEach(async () => {
      // A relay that runs, and whose hook has a log of two comments that it lacks.
      const port = String(await closedPort())
      await run(`hook add octo/demo --url http://127.0.0.1:${port}/webhook`)
      await demo.comment('one', 'two')
      await here.serve('--port', port)
    })

    it.each([
      ['while it looks for the hook', 'hook', SLOW, /^GET .*\/hooks$/],
      ['while it reads the log', 'deliveries', SLOW, /^GET .*\/deliveries$/],
      ['while it asks for a delivery', 'redeliver', SLOW, /^POST .*\/attempts$/],
      ['when a delivery is on its way', 'redeliver', LATE, /^POST .*\/attempts$/],
    ] as const)('%s: the next one gets the rest', async (_, operation, fault, request) => {
      const ended = await interruptAt('catch-up octo/demo', operation, [fault], request)
      expect(ended).toMatchObject(INTERRUPTED)
      await here.sandbox.idle()
      const missing = fault === LATE ? 1 : 2
      const out = `caught up with octo/demo: ${missing} missing, ${missing} arrived\n`
      expect(await run('catch-up octo/demo')).toMatchObject({ code: 0, out })
    })

    it('while it waits for a rate limit', async () => {
      here.sandbox.faults.next('redeliver', 'secondary-limit')
      const command = here.start('catch-up', 'octo/demo')
      expect(await interrupt(command, command.says('Continues in 60 s'))).toMatchObject(INTERRUPTED)
      expect((await run('catch-up octo/demo')).out).toContain('2 arrived')
    })
  })
})

describe('Ctrl-C during relay setup', () => {
  it('while the App is registered: its secrets, which are shown once, are stored', async () => {
    await using user = await place({ env: { RELAY_CLIENT_ID: undefined, RELAY_CLIENT_SECRET: undefined } })
    /** The client that the profile has. */
    const client = async (): Promise<string> =>
      (await user.run('config', '--json')).out.match(/Iv23\w+/)?.[0] ?? ''
    user.sandbox.faults.next('convert', LATE)
    const setup = user.start('setup', '--no-browser')
    const page = register(await addressOf(setup))
    const ended = await interrupt(setup, asked(user.sandbox, /conversions$/))
    expect(ended).toMatchObject({ ...INTERRUPTED, err: expect.stringContaining('Stored the client Iv23') })
    expect(await (await page).text()).toContain('relay has stored its client')
    const before = await client()
    expect(before).not.toBe('')
    const again = user.start('setup', '--no-browser', '--yes')
    await register(await addressOf(again))
    expect((await again.ended).code).toBe(0)
    expect(await client()).not.toBe(before)
  })
})

describe('Ctrl-C during relay login --device', () => {
  it.each([
    ['while the codes are asked for', 'device', SLOW, /^POST .*\/device\/code$/],
    ['while the user enters the code', undefined, undefined, undefined],
    ['while the token is asked for', 'token', SLOW, /^POST .*\/access_token$/],
  ] as const)('%s: the user is not signed in, and the next one works', async (...row) => {
    const [, operation, fault, request] = row
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
    expect((await again.ended).err).toContain('signed in as octo')
  })
})
