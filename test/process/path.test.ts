import { readFileSync } from 'node:fs'
import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { startSandbox } from 'webhook-relay/testing'
import { newPage } from '../kit/browser.js'
import { sign } from '../kit/delivery.js'
import { emptyFolder } from '../kit/folder.js'
import { entriesOf } from '../kit/journal.js'
import { describeWith } from '../kit/needs.js'
import { Pane } from '../kit/pane.js'
import { place } from '../kit/place.js'
import { closedPort } from '../kit/ports.js'
import { type Received, receiver, valuesOf } from '../kit/receiver.js'
import { browserProgram, programFolder } from '../kit/shell.js'
import { smee } from '../kit/smee.js'

/** The section of the README with the path, its commands, and the figures that it states. */
function readPath() {
  const [, section = ''] =
    /^## With your code host\n([^]*?)^## /m.exec(readFileSync('README.md', 'utf8')) ?? []
  const [, block = ''] = /^```sh\n([^]*?)^```$/m.exec(section) ?? []
  const commands = block.split('\n').flatMap((line) => line.replace(/ +# .*$/, '') || [])
  const [, keys, clicks] = /(\d+) keystrokes and\s(\w+)\sclicks/.exec(section) ?? []
  return { commands, keys: Number(keys), clicks }
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

const isComment = ({ body }: Received): boolean => JSON.parse(body.toString()).comment !== undefined

describeWith(['chromium', 'tmux'], 'the way from an empty data folder to the webhook of a comment', () => {
  it('takes the commands of the README, and as many keystrokes and clicks as it says', async () => {
    const { commands, ...figures } = readPath()
    const [setup = '', login = '', serve = '', comment = ''] = commands
    expect(commands).toHaveLength(4)
    // A sandbox, a tunnel server and an application, each started elsewhere.
    await using sandbox = await startSandbox()
    await using here = await place({ host: 'none', env: { RELAY_WEBHOOK_SECRET: undefined } })
    await using server = await smee()
    await using target = await receiver()
    const programs = programFolder()
    await using browser = await browserProgram(programs)
    let addresses = 0
    const nextAddress = async (): Promise<string> => {
      await browser.opened.has(++addresses)
      return String(browser.opened.received[addresses - 1]?.body)
    }
    const env = {
      PATH: programs.path,
      PS1: '$ ',
      BROWSER: browser.command,
      RELAY_HOME: here.home,
      RELAY_PROVIDER: 'sandbox',
      RELAY_PROVIDER_URL: sandbox.url,
      RELAY_PORT: String(await closedPort()),
      RELAY_FORWARD: target.url,
      SMEE: server.url,
    }
    const terminal = { width: 120, height: 60, cwd: emptyFolder(), env }
    const shell = 'exec bash --norc --noprofile -i'
    await using first = new Pane(shell, terminal)
    await using second = new Pane(shell, terminal)
    for (const pane of [first, second]) await pane.shows(/^\$/)
    await using tab = await newPage()
    const { page } = tab
    const person = new Person()
    const began = performance.now()

    person.type(first, setup)
    await page.goto(await nextAddress())
    await person.click(page, 'button', /^Continue to 127\.0\.0\.1/)
    await person.click(page, 'button', /^Create GitHub App/)
    await person.click(page, 'link', 'Install it on your repositories')
    await person.click(page, 'button', 'Install')
    await first.shows(/Next: relay login/)
    person.type(first, login)
    await page.goto(await nextAddress())
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
    const secret = (await here.run('config', '--reveal', 'webhookSecret')).out.trim()
    expect(handed && valuesOf(handed, 'X-Hub-Signature-256')).toEqual([
      sign(secret, handed?.body ?? Buffer.alloc(0)),
    ])
    const entry = (await entriesOf(here, secret)).find(({ event }) => event === 'issue_comment')
    expect(entry?.line['restored']).not.toBeNull()
    expect(entry?.body.toString()).toBe(handed?.body.toString())

    first.press('C-c')
    await first.shows(/the hook of octo\/demo stays[^]*\n\$\n$/)
    first.press('relay hook remove octo/demo; relay hook list octo/demo', 'Enter')
    await first.shows(/hook of octo\/demo removed[^]*octo\/demo has no hooks/)
  })
})
