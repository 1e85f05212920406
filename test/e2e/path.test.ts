import { readFileSync } from 'node:fs'
import path from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { sign } from '../helpers/sign.js'
import { launchBrowser } from '../helpers/browser.js'
import { emptyFolder } from '../helpers/context.js'
import { describeWith } from '../helpers/needs.js'
import { Pane } from '../helpers/pane.js'
import { Program } from '../helpers/program.js'
import { programFolder } from '../helpers/script-shell.js'
import { closedPort, scriptedServer } from '../helpers/scripted-server.js'
import { journalOf, textOf } from '../helpers/serve.js'
import { startSmee } from '../helpers/smee-server.js'
import { type Handed, startTarget, valuesOf } from '../helpers/target.js'

/** The section of the README with the path, its commands, and the figures that it states. */
function readPath() {
  const [, section = ''] =
    /^## With your code host\n([^]*?)^## /m.exec(readFileSync('README.md', 'utf8')) ?? []
  const [, block = ''] = /^```sh\n([^]*?)^```$/m.exec(section) ?? []
  const commands = block.split('\n').flatMap((line) => line.replace(/ +# .*$/, '') || [])
  const [, keys, clicks] = /(\d+) keystrokes and\s(\w+)\sclicks/.exec(section) ?? []
  return { commands, keys: Number(keys), clicks }
}

/** A program for BROWSER that reports the addresses which it is to open. */
async function reportingBrowser(program: (name: string, command: string) => string) {
  const opened: string[] = []
  let report = (): void => {}
  const server = await scriptedServer(({ body }) => {
    opened.push(body)
    report()
    return {}
  })
  const post = `fetch('${server.url}', { method: 'POST', body: process.argv[1] })`
  return {
    command: program('browser', `"${process.execPath}" -e "${post}"`),
    /** The next address. */
    async next(): Promise<string> {
      while (opened.length === 0) await new Promise<void>((resolve) => (report = resolve))
      return opened.shift() ?? ''
    },
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}

/** A person, whose keystrokes and clicks are counted. */
class Person {
  keys = 0
  clicks = 0

  /** Types a command, with what stands for `shown` in this test, and Enter. */
  type(pane: Pane, command: string, shown = command): void {
    this.keys += shown.length + 1
    pane.press(command, 'Enter')
  }

  async click(page: Page, role: 'button' | 'link', name: string | RegExp): Promise<void> {
    this.clicks++
    await page.getByRole(role, { name }).click()
    await page.waitForLoadState()
  }
}

const isComment = ({ body }: Handed): boolean => JSON.parse(body.toString()).comment !== undefined

describeWith(['chromium', 'tmux'], 'the way from an empty data folder to the webhook of a comment', () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await launchBrowser()
  })
  afterAll(() => browser.close())

  it('takes the commands of the README, and as many keystrokes and clicks as it says', async () => {
    const { commands, ...figures } = readPath()
    const [setup = '', login = '', serve = '', comment = ''] = commands
    expect(commands).toHaveLength(4)
    // A sandbox, a tunnel server and an application, each started elsewhere.
    await using host = new Program(['serve', '--sandbox', '--port', '0', '--sandbox-port', '0', '--json'], {
      RELAY_HOME: emptyFolder(),
    })
    const { sandbox } = await host.listening()
    await using smee = await startSmee()
    await using target = await startTarget()
    const { bin, program } = programFolder()
    await using opened = await reportingBrowser(program)
    const home = emptyFolder()
    const env = {
      PATH: `${bin}:${process.env['PATH']}`,
      PS1: '$ ',
      BROWSER: opened.command,
      RELAY_HOME: home,
      RELAY_PROVIDER: 'sandbox',
      RELAY_PROVIDER_URL: sandbox,
      RELAY_PORT: String(await closedPort()),
      RELAY_FORWARD: target.url,
      SMEE: smee.url,
    }
    const terminal = { width: 120, height: 60, cwd: emptyFolder(), env }
    const shell = 'exec bash --norc --noprofile -i'
    using first = new Pane(shell, terminal)
    using second = new Pane(shell, terminal)
    for (const pane of [first, second]) await pane.shows(/^\$/)
    const page = await browser.newPage()
    const person = new Person()
    const began = performance.now()

    person.type(first, setup)
    await page.goto(await opened.next())
    await person.click(page, 'button', /^Continue to 127\.0\.0\.1/)
    await person.click(page, 'button', /^Create GitHub App/)
    await person.click(page, 'link', 'Install it on your repositories')
    await person.click(page, 'button', 'Install')
    await first.shows(/Next: relay login/)
    person.type(first, login)
    await page.goto(await opened.next())
    await person.click(page, 'button', 'Authorize')
    await first.shows(/signed in as octo/)
    person.type(first, serve.replace('--tunnel', '--tunnel $SMEE'), serve)
    await first.shows(/hook of octo\/demo created: [^]*caught up with octo\/demo/)
    person.type(second, comment)
    await first.shows(/issue_comment\.created +octo\/demo#1/)
    while (!target.received.some(isComment)) await target.has(target.received.length + 1)

    const seconds = ((performance.now() - began) / 1000).toFixed(1)
    const { keys, clicks } = person
    process.stderr.write(`The path took ${keys} keystrokes, ${clicks} clicks and ${seconds} s.\n`)
    expect({ keys, clicks: clicks === 5 ? 'five' : clicks }).toEqual(figures)

    // It came through the tunnel, and what was forwarded are the bytes that the sandbox signed.
    const handed = target.received.find(isComment)
    const secret = readFileSync(path.join(home, 'default', 'webhook-secret'), 'utf8').trim()
    expect(handed && valuesOf(handed, 'X-Hub-Signature-256')).toEqual([
      sign(secret, handed?.body ?? Buffer.alloc(0)),
    ])
    const entry = (await journalOf(home)).find(({ event }) => event === 'issue_comment')
    expect(entry?.restored).toBeDefined()
    expect(entry && textOf(entry)).toBe(handed?.body.toString())

    first.press('C-c')
    await first.shows(/the hook of octo\/demo stays[^]*\n\$\n$/)
    first.press('relay hook remove octo/demo; relay hook list octo/demo', 'Enter')
    await first.shows(/hook of octo\/demo removed[^]*octo\/demo has no hooks/)
    await page.close()
  }, 120_000)
})
