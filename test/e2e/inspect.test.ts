import { readFileSync } from 'node:fs'
import path from 'node:path'
import type { Browser, Download, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { launchBrowser } from '../helpers/browser.js'
import { emptyFolder } from '../helpers/context.js'
import { type InspectorPage, openInspector, waitUntilLive } from '../helpers/inspector-page.js'
import { describeWith } from '../helpers/needs.js'
import { Program, relay } from '../helpers/program.js'
import { closedPort } from '../helpers/scripted-server.js'
import { startTarget, type TargetServer } from '../helpers/target.js'

const EDITED = '{"edited":"by hand"}'

/** A sandbox whose deliveries go to a target, and the inspector of it in a tab. */
interface Desk extends AsyncDisposable {
  readonly url: string
  readonly env: Readonly<Record<string, string>>
  readonly program: Program
  readonly target: TargetServer
  readonly tab: InspectorPage
}

describeWith('chromium', 'the inspector, as a person uses it', () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await launchBrowser()
  })
  afterAll(async () => {
    await browser.close()
  })

  async function openDesk(): Promise<Desk> {
    const env = { RELAY_HOME: emptyFolder(), RELAY_PROFILE: 'sandbox' }
    const target = await startTarget()
    const flags = [
      '--port',
      String(await closedPort()),
      '--sandbox-port',
      '0',
      '--json',
      '--forward',
      `*=${target.url}/hook`,
    ]
    const program = new Program(['serve', '--sandbox', ...flags], env)
    const { url } = await program.listening()
    const code = async (): Promise<string> => {
      const { out } = await relay(['inspect', '--no-browser', '--json'], env)
      const printed: { code: string } = JSON.parse(out)
      return printed.code
    }
    const tab = await openInspector(browser, { url, code })
    await waitUntilLive(tab.page)
    const close = async (): Promise<void> => {
      await tab[Symbol.asyncDispose]()
      await program[Symbol.asyncDispose]()
      await target[Symbol.asyncDispose]()
    }
    return { url, env, program, target, tab, [Symbol.asyncDispose]: close }
  }

  it('with a pointer', async () => {
    await using desk = await openDesk()
    const { page, faults } = desk.tab
    // The sandbox's own ping.
    await page.locator('.rows .row').waitFor()
    await sendThree(desk)
    await page.locator('.rows .mark-succeeded').nth(3).waitFor()

    await takeDownAndBack(desk, () => page.locator('.rows .mark-down').waitFor())

    await page.locator('.rows .row[data-n="3"]').click()
    await page.getByRole('heading', { level: 1, name: 'push' }).waitFor()
    await page.getByRole('button', { name: 'Forward again' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Forward again' }).click()
    await desk.target.has(6)
    expect(idOf(desk.target, 5)).toBe(idOf(desk.target, 2))

    await page.getByRole('button', { name: 'Edit and send' }).click()
    await page.locator('.cm-content:focus').waitFor()
    await page.keyboard.press('Control+a')
    await page.keyboard.insertText(EDITED)
    await page.getByRole('button', { name: 'Send', exact: true }).click()
    await page.waitForURL('**/deliveries/6')
    await page.getByRole('article').getByText('edited', { exact: true }).waitFor()
    await desk.target.has(7)
    expect(desk.target.received.at(-1)?.body.toString()).toBe(EDITED)

    await sendWronglySigned(desk.url)
    await page.getByRole('link', { name: 'Refused 1' }).click()
    await page.locator('.row-refused').click()
    await page.getByRole('heading', { name: 'Refused: invalid signature' }).waitFor()
    expect(await page.locator('.detail .sentences li').count()).toBeGreaterThan(0)

    await page.getByRole('link', { name: 'Deliveries' }).first().click()
    await page.locator('.rows .row[data-n="2"]').click()
    await page.locator('.head-n', { hasText: '#2' }).waitFor()
    const download = page.waitForEvent('download')
    await page.getByRole('link', { name: 'Download fixture' }).click()
    await expectVerified(desk, await download)
    expect(faults).toEqual([])
  })

  it('with the keyboard alone', async () => {
    await using desk = await openDesk()
    const { page, faults } = desk.tab
    const { keyboard } = page
    await sendThree(desk)
    await page.locator('.rows .mark-succeeded').nth(3).waitFor()

    await keyboard.press('?')
    await page.getByRole('dialog', { name: 'Keys' }).waitFor()
    await keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })

    await takeDownAndBack(desk, () => page.locator('.rows .mark-down').waitFor())

    // The second from the top: j goes to the first, then down.
    await keyboard.press('j')
    await keyboard.press('ArrowDown')
    await page.locator('.row[data-n="4"]:focus').waitFor()
    await keyboard.press('Enter')
    await page.waitForURL('**/deliveries/4')
    await keyboard.press('j')
    await page.waitForURL('**/deliveries/3')
    await page.getByRole('heading', { level: 1, name: 'push' }).waitFor()
    await page.locator('.head-n', { hasText: '#3' }).waitFor()

    await keyboard.press('r')
    await page.getByRole('dialog', { name: 'Forward #3 again' }).waitFor()
    await page.locator('dialog [data-first]:focus').waitFor()
    await keyboard.press('Enter')
    await desk.target.has(6)
    await page.getByRole('dialog').waitFor({ state: 'detached' })

    await keyboard.press('e')
    await page.locator('.cm-content:focus').waitFor()
    await keyboard.press('Control+a')
    await keyboard.insertText(EDITED)
    await tabTo(page, 'Send')
    await keyboard.press('Enter')
    await page.waitForURL('**/deliveries/6')
    await desk.target.has(7)
    expect(desk.target.received.at(-1)?.body.toString()).toBe(EDITED)

    await keyboard.press('/')
    await keyboard.type('by hand')
    await page.waitForURL('**text=by+hand')
    await keyboard.press('Escape')
    await keyboard.press('Escape')
    await page.waitForURL('**/inspect/?text=by+hand')
    await page.locator('.row[data-n="5"]').waitFor({ state: 'detached' })
    await expect.poll(() => page.locator('.rows .row').count()).toBe(1)

    await sendWronglySigned(desk.url)
    await page.getByRole('link', { name: 'Refused 1' }).waitFor()
    await tabTo(page, 'Refused')
    await keyboard.press('Enter')
    await page.locator('.row-refused').waitFor()
    await tabTo(page, 'invalid signature')
    await keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Refused: invalid signature' }).waitFor()

    await tabTo(page, 'Deliveries')
    await keyboard.press('Enter')
    await page.locator('.rows .row[data-n="2"]').waitFor()
    // From the sixth, which was open last.
    for (const _ of [5, 4, 3, 2]) await keyboard.press('j')
    await page.locator('.row[data-n="2"]:focus').waitFor()
    await keyboard.press('Enter')
    await page.locator('.head-n', { hasText: '#2' }).waitFor()
    await tabTo(page, 'Download fixture')
    const download = page.waitForEvent('download')
    await keyboard.press('Enter')
    await expectVerified(desk, await download)
    expect(faults).toEqual([])
  })

  it('gives a second tab the key of the first, and says what one without it can do', async () => {
    await using desk = await openDesk()
    await sendThree(desk)
    const second = await desk.tab.page.context().newPage()
    await second.goto(`${desk.url}/inspect/deliveries/1`)
    await expect.poll(() => second.getByRole('button', { name: 'Forward again' }).isEnabled()).toBe(true)
    await desk.tab.page.close()
    await second.evaluate('sessionStorage.clear()')
    await second.reload()
    await second.getByText('This tab can only read.').waitFor()
    expect(await second.getByRole('button', { name: 'Forward again' }).isEnabled()).toBe(false)
  })

  it('waits quietly while relay is away, and says how to open it again', async () => {
    await using desk = await openDesk()
    await sendThree(desk)
    const { page } = desk.tab
    await page.locator('.rows .row').nth(3).waitFor()
    const port = new URL(desk.url).port
    desk.program.child.kill('SIGTERM')
    await page.getByText('relay stopped; waiting for it').waitFor()
    expect(await page.locator('.rows .row').count()).toBe(4)
    await using next = new Program(
      ['serve', '--sandbox', '--port', port, '--sandbox-port', '0', '--json'],
      desk.env,
    )
    await next.listening()
    await page.getByText('This page is no longer open to relay').waitFor()
  })
})

async function sendThree({ env, target }: Desk): Promise<void> {
  for (const event of ['push', 'push', 'pull_request.opened'])
    expect((await relay(['trigger', event], env)).code).toBe(0)
  await target.has(4)
}

/** One delivery while nothing listens at the target, which then gets it. */
async function takeDownAndBack({ env, target }: Desk, seenDown: () => Promise<void>): Promise<void> {
  await target.down()
  expect((await relay(['trigger', 'push'], env)).code).toBe(0)
  await seenDown()
  await target.up()
  await target.has(5)
}

async function sendWronglySigned(url: string): Promise<void> {
  const headers = {
    'X-GitHub-Event': 'push',
    'X-GitHub-Delivery': 'one',
    'X-Hub-Signature-256': `sha256=${'0'.repeat(64)}`,
  }
  const { status } = await fetch(`${url}/webhook`, { method: 'POST', headers, body: '{}' })
  expect(status).toBe(401)
}

async function expectVerified({ env }: Desk, download: Download): Promise<void> {
  const file = path.join(emptyFolder(), 'one.json')
  await download.saveAs(file)
  expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject({ relay: 1, event: 'push' })
  const { code, err } = await relay(['verify', file], env)
  expect([code, err]).toEqual([0, expect.any(String)])
}

/** The delivery id of what a target received. */
function idOf({ received }: TargetServer, index: number): string | undefined {
  return received[index]?.headers.find(([name]) => name.toLowerCase() === 'x-github-delivery')?.[1]
}

/** Presses Tab until what has the focus contains this text. */
async function tabTo(page: Page, text: string): Promise<void> {
  for (let presses = 0; presses < 100; presses++) {
    await page.keyboard.press('Tab')
    const focused = await page.locator(':focus:not(body)').allTextContents()
    if (focused.some((content) => content.includes(text))) return
  }
  throw new Error(`no Tab reaches ${text}`)
}
