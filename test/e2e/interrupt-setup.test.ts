import { readdirSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { startSandbox } from '../../src/testing/index.js'
import { post, register } from '../cli/commands/setup/rig.js'
import { CLIENT, codeHost } from '../helpers/code-host.js'
import { emptyFolder } from '../helpers/context.js'
import { asked, interrupt, INTERRUPTED, LATE, SLOW } from '../helpers/interrupt.js'
import { describeWith } from '../helpers/needs.js'
import { Pane } from '../helpers/pane.js'
import { Program, relay } from '../helpers/program.js'

/** The address that a command prints for a browser, once it has. */
async function printed(program: Program): Promise<string> {
  await program.says('Ctrl-C cancels')
  return /\n {2}(http\S+)\n/.exec(program.err)?.[1] ?? ''
}

async function start() {
  const sandbox = await startSandbox()
  const env = { RELAY_HOME: emptyFolder(), RELAY_PROVIDER: 'sandbox', RELAY_PROVIDER_URL: sandbox.url }
  return {
    sandbox,
    env,
    setup: (...flags: string[]) => new Program(['setup', '--no-browser', ...flags], env),
    /** The client that the profile has. */
    client: async (): Promise<string> =>
      (await relay(['config', '--json'], env)).out.match(/Iv23\w+/)?.[0] ?? '',
    [Symbol.asyncDispose]: () => sandbox[Symbol.asyncDispose](),
  }
}
type Place = Awaited<ReturnType<typeof start>>

async function setsUp(place: Place, ...flags: string[]): Promise<void> {
  await using program = place.setup(...flags)
  await register(await printed(program))
  expect((await program.ended).code).toBe(0)
}

/** Enters the code that a command prints in the sandbox's page, and allows it. */
async function enterCode(address: string, said: string): Promise<void> {
  const user_code = /\n {2}([A-Z]{4}-[A-Z]{4})\n/.exec(said)?.[1] ?? ''
  const page = await (await post(address, { user_code })).text()
  const authenticity_token = /name="authenticity_token" value="([^"]+)"/.exec(page)?.[1] ?? ''
  await post(`${address}/confirmation`, { authenticity_token, authorize: '1' })
}

describe('Ctrl-C during relay setup', () => {
  it('while it waits for the browser: nothing is stored, and its address is gone', async () => {
    await using place = await start()
    await using program = place.setup()
    const address = await printed(program)
    expect(await program.stop('SIGINT')).toMatchObject(INTERRUPTED)
    expect(readdirSync(place.env.RELAY_HOME)).toEqual([])
    await expect(fetch(address)).rejects.toThrow('fetch failed')
    await setsUp(place)
  })

  it('while the App is registered: its secrets, which are shown once, are stored', async () => {
    await using place = await start()
    place.sandbox.faults.next('convert', LATE)
    await using program = place.setup()
    const page = register(await printed(program))
    const ended = await interrupt(program, asked(place.sandbox, /conversions$/))
    expect(ended).toMatchObject({ ...INTERRUPTED, err: expect.stringContaining('Stored the client Iv23') })
    expect(await (await page).text()).toContain('relay has stored its client')
    const before = await place.client()
    expect(before).not.toBe('')
    await setsUp(place, '--yes')
    expect(await place.client()).not.toBe(before)
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
      await using sandbox = await startSandbox({ client: CLIENT })
      const env = { RELAY_HOME: emptyFolder(), ...codeHost(sandbox) }
      if (operation) sandbox.faults.next(operation, fault)
      await using program = new Program(['login', '--device'], env)
      const reached = request ? asked(sandbox, request) : printed(program)
      expect(await interrupt(program, reached)).toMatchObject(INTERRUPTED)
      expect(await relay(['whoami'], env)).toMatchObject({ code: 4 })
      sandbox.faults.clear()
      await using again = new Program(['login', '--device'], env)
      await enterCode(await printed(again), again.err)
      expect(await again.ended).toMatchObject({ code: 0, err: expect.stringContaining('signed in as octo') })
    },
  )
})

describeWith('tmux', 'an answer, or Ctrl-C, at a question of relay setup', () => {
  const script = 'trap : INT; relay setup; echo "exit $?"'
  const size = { width: 120, height: 50 }

  it('keeps the client that it would replace', async () => {
    await using place = await start()
    await setsUp(place)
    const before = await place.client()
    using pane = new Pane(script, { ...size, env: place.env })
    await pane.shows(/Replace it\? \[y\/N\]/)
    pane.press('C-c')
    await pane.shows(/exit 130/)
    expect(await place.client()).toBe(before)
  })

  it('replaces it after a yes, and after no other answer', async () => {
    await using place = await start()
    await setsUp(place)
    const before = await place.client()
    const ask = script.replace('setup', 'setup --no-browser')
    for (const answer of ['n', '']) {
      using pane = new Pane(ask, { ...size, env: place.env })
      await pane.shows(/Replace it\? \[y\/N\]/)
      pane.press(answer, 'Enter')
      await pane.shows(/Nothing was changed[^]*exit 130/)
    }
    expect(await place.client()).toBe(before)
    using pane = new Pane(ask, { ...size, env: place.env })
    await pane.shows(/Replace it\? \[y\/N\]/)
    pane.press('y', 'Enter')
    await pane.shows(/Ctrl-C cancels/)
    await register(/http:\S+\/setup\/\S+/.exec(pane.unbroken())?.[0] ?? '')
    await pane.shows(/exit 0/)
    expect(await place.client()).not.toBe(before)
  })

  it('leaves nothing behind without an answer', async () => {
    const home = emptyFolder()
    const env = { RELAY_HOME: home, RELAY_PROVIDER: 'gitea', RELAY_PROVIDER_URL: 'http://127.0.0.1:9' }
    using pane = new Pane(script, { ...size, env })
    await pane.shows(/Access token/)
    pane.press('C-c')
    await pane.shows(/exit 130/)
    expect(readdirSync(home)).toEqual([])
  })
})
