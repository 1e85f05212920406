import { chmodSync, existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { emptyFolder } from '../kit/folder.js'
import { enter } from '../kit/inspector.js'
import { describeWith } from '../kit/needs.js'
import { Pane } from '../kit/pane.js'
import { place } from '../kit/place.js'
import { commandLines } from '../kit/processes.js'

/** A browser that writes its arguments to a file and runs until it is disposed of. */
function recordingBrowser() {
  const folder = emptyFolder()
  const program = path.join(folder, 'browser')
  const args = path.join(folder, 'args')
  const write = `printf '%s\\n' "$@" > ${args}.new && mv ${args}.new ${args}`
  writeFileSync(program, `#!/bin/sh\n${write}\nwhile [ -e "$0" ]; do sleep 0.1; done\n`)
  chmodSync(program, 0o755)
  return {
    program,
    async opened(): Promise<URL> {
      await expect.poll(() => existsSync(args)).toBe(true)
      return new URL(readFileSync(args, 'utf8').trim())
    },
    [Symbol.dispose]: () => rmSync(program),
  }
}

/** Where the page of a private file leads. */
function addressIn(file: URL): string {
  const [, address = '""'] = /location\.replace\(("[^"]*")\)/.exec(readFileSync(file, 'utf8')) ?? []
  return JSON.parse(address)
}

describeWith('tmux', 'the key i of relay serve', () => {
  it('opens the inspector in the browser', async () => {
    using browser = recordingBrowser()
    await using here = await place({ host: 'none', env: { BROWSER: browser.program } })
    await using pane = new Pane('relay serve --port 0', { width: 100, height: 50, env: here.env })
    await pane.shows(/key i, or relay inspect[^]*Press \?/)
    pane.press('i')
    const { origin, hash } = new URL(addressIn(await browser.opened()))
    expect((await enter(origin, hash.slice(1))).status).toBe(200)
    await pane.shows(/The inspector is open in your browser/)
    pane.press('q')
    await pane.ended()
  })
})

describeWith('Linux', 'relay inspect', () => {
  it('opens the page through a private file, with the code in no process list', async () => {
    using browser = recordingBrowser()
    const home = emptyFolder()
    await using here = await place({ host: 'none', env: { BROWSER: browser.program, HOME: home } })
    const { address } = await here.serve()
    const command = here.start('inspect', '7')

    const file = await browser.opened()
    expect(file.protocol).toBe('file:')
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(statSync(path.dirname(file.pathname)).mode & 0o777).toBe(0o700)
    // A browser from a Snap reads no folder whose name begins with a dot.
    expect(path.relative(home, file.pathname)).toMatch(/^relay-inspect-\w+\/relay\.html$/)
    const { origin, pathname, hash } = new URL(addressIn(file))
    const [, code = ''] = /^#((?:\w{4}-){3}\w{4})\/7$/.exec(hash) ?? []
    expect([origin, pathname, code.length]).toEqual([address, '/inspect/', 19])
    expect(commandLines()).toContain(file.pathname)
    expect(commandLines()).not.toContain(code)

    expect((await enter(address, code)).status).toBe(200)
    const open = `The inspector is open in your browser: ${address}/inspect/deliveries/7\n`
    expect(await command.ended).toMatchObject({ code: 0, out: '', err: open })
    expect(readdirSync(home)).toEqual([])
  })

  it('says after 5 seconds how to open the page by hand', async () => {
    using browser = recordingBrowser()
    await using here = await place({ host: 'none', env: { BROWSER: browser.program, HOME: emptyFolder() } })
    const { address } = await here.serve()
    const command = here.start('inspect', '--json')
    await command.says(/and enter the code .*\n/)
    const [, shown, code = ''] = /Open (\S+) and enter the code (\S+)/.exec(command.err) ?? []
    expect(shown).toBe(`${address}/inspect/`)
    expect((await enter(address, code)).status).toBe(200)
    const { code: exit, out } = await command.ended
    expect([exit, JSON.parse(out)]).toEqual([0, { v: 1, address: `${address}/inspect/`, opened: true }])
  })

  it('prints address and code where the private file cannot be written, and the way in from another machine', async () => {
    await using here = await place({ host: 'none', env: { HOME: '/dev/null' } })
    const { address, port } = await here.serve()
    const lines = expect.stringMatching(`^${address}/inspect/\n(?:\\w{4}-){3}\\w{4}\n$`)
    for (const flags of [[], ['--no-browser']])
      expect(await here.run('inspect', ...flags)).toMatchObject({ code: 0, out: lines })
    const remote = await here.runWith(
      { env: { SSH_CONNECTION: '10.0.0.1 1 10.0.0.2 22' } },
      'inspect',
      'last',
    )
    expect(remote.out).toMatch(`${address}/inspect/deliveries/last\n`)
    expect(remote.err).toContain(`ssh -L ${port}:127.0.0.1:${port} <this machine>`)
    const object = { v: 1, address: `${address}/inspect/`, code: expect.any(String), opened: false }
    expect(JSON.parse((await here.run('inspect', '--no-browser', '--json')).out)).toEqual(object)
  })
})

describe('relay inspect without an inspector', () => {
  it('says how to start one', async () => {
    await using here = await place({ host: 'none' })
    const inspect = async () => {
      const { code, err } = await here.run('inspect')
      return [code, err]
    }
    expect(await inspect()).toEqual([1, expect.stringContaining('Start it with relay serve')])
    await here.serve('--no-inspect')
    const off = 'The inspector is off: relay runs with --no-inspect'
    expect(await inspect()).toEqual([2, expect.stringContaining(off)])
  })
})
