import { chmodSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { emptyFolder } from '../helpers/context.js'
import { SECRET } from '../helpers/delivery.js'
import { Program, relay } from '../helpers/program.js'
import { describeWith } from '../helpers/needs.js'
import { Pane } from '../helpers/pane.js'
import { serve } from '../helpers/serve.js'

/** The command lines of all processes of this machine, as any user can list them. */
function processList(): string {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8')
      } catch {
        return ''
      }
    })
    .join('\n')
}

/** A browser that writes its arguments to a file and waits until it may end. */
function recordingBrowser() {
  const folder = emptyFolder()
  const program = path.join(folder, 'browser')
  const args = path.join(folder, 'args')
  writeFileSync(program, `#!/bin/sh\nprintf '%s\\n' "$@" > ${args}.new && mv ${args}.new ${args}\nsleep 60\n`)
  chmodSync(program, 0o755)
  return { program, args }
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
    const browser = recordingBrowser()
    using pane = new Pane('relay serve --port 0', {
      width: 100,
      height: 50,
      env: { RELAY_HOME: emptyFolder(), RELAY_WEBHOOK_SECRET: SECRET, BROWSER: browser.program },
    })
    await pane.shows(/key i, or relay inspect[^]*Press \?/)
    pane.press('i')
    await expect.poll(() => existsSync(browser.args)).toBe(true)
    const { action, code } = formIn(new URL(readFileSync(browser.args, 'utf8').trim()))
    const opened = await fetch(action, { method: 'POST', body: new URLSearchParams({ code }) })
    expect(opened.status).toBe(200)
    await pane.shows(/The inspector is open in your browser/)
    pane.press('q')
    await pane.ended()
  })
})

describeWith('Linux', 'relay inspect', () => {
  it('opens the page through a private file, with the code in no process list', async () => {
    const home = emptyFolder()
    await using program = serve(home)
    const url = await program.url()
    const browser = recordingBrowser()
    const env = { RELAY_HOME: home, RELAY_WEBHOOK_SECRET: SECRET, BROWSER: browser.program }
    await using command = new Program(['inspect', '7'], env)
    await expect.poll(() => existsSync(browser.args)).toBe(true)

    const file = new URL(readFileSync(browser.args, 'utf8').trim())
    expect(file.protocol).toBe('file:')
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(statSync(path.dirname(file.pathname)).mode & 0o777).toBe(0o700)
    const { action, code } = formIn(file)
    expect(action).toBe(`${url}/inspect/open`)
    expect(code).toMatch(/^(?:\w{4}-){3}\w{4}$/)
    expect(processList()).toContain(file.pathname)
    expect(processList()).not.toContain(code)

    const body = new URLSearchParams({ code, entry: '7' })
    const opened = await fetch(action, { method: 'POST', headers: { Origin: 'null' }, body })
    expect([opened.status, await opened.text()]).toEqual([
      200,
      expect.stringContaining('data-to="/inspect/deliveries/7"'),
    ])
    expect(await command.ended).toMatchObject({
      code: 0,
      out: '',
      err: `The inspector is open in your browser: ${url}/inspect/deliveries/7\n`,
    })
    expect(existsSync(path.dirname(file.pathname))).toBe(false)
  })

  it('prints address and code on lines of their own, and the way in from another machine', async () => {
    const home = emptyFolder()
    await using program = serve(home)
    const url = await program.url()
    const { port } = new URL(url)
    const env = { RELAY_HOME: home, RELAY_WEBHOOK_SECRET: SECRET }
    const plain = await relay(['inspect', '--no-browser'], env)
    expect(plain).toMatchObject({
      code: 0,
      out: expect.stringMatching(`^${url}/inspect/\n(?:\\w{4}-){3}\\w{4}\n$`),
    })
    const remote = await relay(['inspect', 'last'], { ...env, SSH_CONNECTION: '10.0.0.1 1 10.0.0.2 22' })
    expect(remote.out).toMatch(`${url}/inspect/deliveries/last\n`)
    expect(remote.err).toContain(`ssh -L ${port}:127.0.0.1:${port} <this machine>`)
    const json = await relay(['inspect', '--no-browser', '--json'], env)
    expect(JSON.parse(json.out)).toEqual({
      v: 1,
      address: `${url}/inspect/`,
      code: expect.any(String),
      opened: false,
    })
  })
})

describe('relay inspect without an inspector', () => {
  it('says how to start one', async () => {
    const home = emptyFolder()
    expect(await relay(['inspect'], { RELAY_HOME: home })).toMatchObject({
      code: 1,
      err: expect.stringContaining('Start it with relay serve'),
    })
    await using program = serve(home, undefined, ['--no-inspect'])
    const url = await program.url()
    expect(await relay(['inspect'], { RELAY_HOME: home, RELAY_WEBHOOK_SECRET: SECRET })).toMatchObject({
      code: 1,
      err: expect.stringContaining('The inspector is off: relay runs with --no-inspect'),
    })
    expect((await fetch(`${url}/inspect/`)).status).toBe(404)
  })
})
