import { chmodSync, existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { emptyFolder } from '../kit/folder.js'
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

/** Where the page of a private file posts its code. */
function formIn(file: URL) {
  const page = readFileSync(file, 'utf8')
  const [, action = ''] = /action="([^"]*)"/.exec(page) ?? []
  const [, code = ''] = /name="code" value="([^"]*)"/.exec(page) ?? []
  return { action, code }
}

describeWith('tmux', 'the key i of relay serve', () => {
  it('opens the inspector in the browser', async () => {
    using browser = recordingBrowser()
    await using here = await place({ host: 'none', env: { BROWSER: browser.program } })
    await using pane = new Pane('relay serve --port 0', { width: 100, height: 50, env: here.env })
    await pane.shows(/key i, or relay inspect[^]*Press \?/)
    pane.press('i')
    const { action, code } = formIn(await browser.opened())
    const opened = await fetch(action, { method: 'POST', body: new URLSearchParams({ code }) })
    expect(opened.status).toBe(200)
    await pane.shows(/The inspector is open in your browser/)
    pane.press('q')
    await pane.ended()
  })
})

describeWith('Linux', 'relay inspect', () => {
  it('opens the page through a private file, with the code in no process list', async () => {
    using browser = recordingBrowser()
    await using here = await place({ host: 'none', env: { BROWSER: browser.program } })
    const { address } = await here.serve()
    const command = here.start('inspect', '7')

    const file = await browser.opened()
    expect(file.protocol).toBe('file:')
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(statSync(path.dirname(file.pathname)).mode & 0o777).toBe(0o700)
    const { action, code } = formIn(file)
    expect(action).toBe(`${address}/inspect/open`)
    expect(code).toMatch(/^(?:\w{4}-){3}\w{4}$/)
    expect(commandLines()).toContain(file.pathname)
    expect(commandLines()).not.toContain(code)

    const body = new URLSearchParams({ code, entry: '7' })
    const opened = await fetch(action, { method: 'POST', headers: { Origin: 'null' }, body })
    expect([opened.status, await opened.text()]).toEqual([
      200,
      expect.stringContaining('data-to="/inspect/deliveries/7"'),
    ])
    expect(await command.ended).toMatchObject({
      code: 0,
      out: '',
      err: `The inspector is open in your browser: ${address}/inspect/deliveries/7\n`,
    })
    expect(existsSync(path.dirname(file.pathname))).toBe(false)
  })

  it('prints address and code on lines of their own, and the way in from another machine', async () => {
    await using here = await place({ host: 'none' })
    const { address } = await here.serve()
    const { port } = new URL(address)
    expect(await here.run('inspect', '--no-browser')).toMatchObject({
      code: 0,
      out: expect.stringMatching(`^${address}/inspect/\n(?:\\w{4}-){3}\\w{4}\n$`),
    })
    const remote = await here.runWith(
      { env: { SSH_CONNECTION: '10.0.0.1 1 10.0.0.2 22' } },
      'inspect',
      'last',
    )
    expect(remote.out).toMatch(`${address}/inspect/deliveries/last\n`)
    expect(remote.err).toContain(`ssh -L ${port}:127.0.0.1:${port} <this machine>`)
    const json = await here.run('inspect', '--no-browser', '--json')
    expect(JSON.parse(json.out)).toEqual({
      v: 1,
      address: `${address}/inspect/`,
      code: expect.any(String),
      opened: false,
    })
  })
})

describe('relay inspect without an inspector', () => {
  it('says how to start one', async () => {
    await using here = await place({ host: 'none' })
    expect(await here.run('inspect')).toMatchObject({
      code: 1,
      err: expect.stringContaining('Start it with relay serve'),
    })
    const { address } = await here.serve('--no-inspect')
    expect(await here.run('inspect')).toMatchObject({
      code: 1,
      err: expect.stringContaining('The inspector is off: relay runs with --no-inspect'),
    })
    expect((await fetch(`${address}/inspect/`)).status).toBe(404)
  })
})
