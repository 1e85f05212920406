import { readFileSync } from 'node:fs'
import path from 'node:path'
import type { Download, Locator } from 'playwright-core'
import { expect, it } from 'vitest'
import { inspector, openInspector, type Tab, tabTo, waitUntilLive } from '../kit/browser.js'
import { Closing } from '../kit/closing.js'
import { emptyFolder } from '../kit/folder.js'
import { describeWith } from '../kit/needs.js'
import { type Place, place, type Serving } from '../kit/place.js'
import { closedPort } from '../kit/ports.js'
import { type Receiver, receiver, valuesOf } from '../kit/receiver.js'

const EDITED = '{"edited":"by hand"}'
const SANDBOX = ['--sandbox', '--sandbox-port', '0']

/** A sandbox whose deliveries go to a target, and the inspector of it in a tab. */
interface Desk extends AsyncDisposable {
  readonly here: Place
  readonly relay: Serving
  readonly target: Receiver
  readonly tab: Tab
}

async function openDesk(): Promise<Desk> {
  await using starting = new Closing()
  const here = starting.use(await place({ host: 'none', env: { RELAY_PROFILE: 'sandbox' } }))
  const target = starting.use(await receiver())
  const port = String(await closedPort())
  const relay = await here.serve(...SANDBOX, '--port', port, '--forward', `*=${target.url}/hook`)
  const tab = starting.use(await openInspector(here, relay))
  await waitUntilLive(tab.page)
  const closing = starting.move()
  return { here, relay, target, tab, [Symbol.asyncDispose]: () => closing[Symbol.asyncDispose]() }
}

describeWith('chromium', 'the inspector, as a person uses it', () => {
  it('with a pointer', async () => {
    await using desk = await openDesk()
    const { page, faults } = desk.tab
    // The sandbox's own ping.
    await inspector.rows(page).waitFor()
    await sendThree(desk)
    await inspector.marks(page, 'succeeded').nth(3).waitFor()

    await takeDownAndBack(desk, () => inspector.marks(page, 'down').waitFor())

    await inspector.row(page, 3).click()
    await page.getByRole('heading', { level: 1, name: 'push' }).waitFor()
    await page.getByRole('button', { name: 'Forward again' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Forward again' }).click()
    await desk.target.has(6)
    expect(idOf(desk.target, 5)).toBe(idOf(desk.target, 2))

    await page.getByRole('button', { name: 'Edit and send' }).click()
    await inspector.focusedEditor(page).waitFor()
    await page.keyboard.press('Control+a')
    await page.keyboard.insertText(EDITED)
    await page.getByRole('button', { name: 'Send', exact: true }).click()
    await page.waitForURL('**/deliveries/6')
    await page.getByRole('article').getByText('edited', { exact: true }).waitFor()
    await desk.target.has(7)
    expect(desk.target.received.at(-1)?.body.toString()).toBe(EDITED)

    await sendWronglySigned(desk)
    await page.getByRole('link', { name: 'Refused 1' }).click()
    await inspector.refused(page).click()
    await page.getByRole('heading', { name: 'Refused: invalid signature' }).waitFor()
    expect(await inspector.reasons(page).count()).toBeGreaterThan(0)
    await page.keyboard.press('Escape')
    await page.locator('h1:focus', { hasText: 'Refused requests' }).waitFor()

    await page.getByRole('link', { name: 'Deliveries' }).first().click()
    await inspector.row(page, 2).click()
    await inspector.number(page, 2).waitFor()
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
    await inspector.marks(page, 'succeeded').nth(3).waitFor()

    await keyboard.press('?')
    await page.getByRole('dialog', { name: 'Keys' }).waitFor()
    await keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })

    await takeDownAndBack(desk, () => inspector.marks(page, 'down').waitFor())

    // The second from the top: j goes to the first, then down.
    await keyboard.press('j')
    await keyboard.press('ArrowDown')
    await inspector.focusedRow(page, 4).waitFor()
    await keyboard.press('Enter')
    await page.waitForURL('**/deliveries/4')
    await keyboard.press('j')
    await page.waitForURL('**/deliveries/3')
    await page.getByRole('heading', { level: 1, name: 'push' }).waitFor()
    await inspector.number(page, 3).waitFor()

    await keyboard.press('r')
    await page.getByRole('dialog', { name: 'Forward #3 again' }).waitFor()
    await inspector.firstOfDialog(page).waitFor()
    await keyboard.press('Enter')
    await desk.target.has(6)
    await page.getByRole('dialog').waitFor({ state: 'detached' })

    await keyboard.press('e')
    await inspector.focusedEditor(page).waitFor()
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
    await inspector.row(page, 5).waitFor({ state: 'detached' })
    await expect.poll(() => inspector.rows(page).count()).toBe(1)

    await sendWronglySigned(desk)
    await page.getByRole('link', { name: 'Refused 1' }).waitFor()
    await tabTo(page, 'Refused')
    await keyboard.press('Enter')
    await inspector.refused(page).waitFor()
    await tabTo(page, 'invalid signature')
    await keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Refused: invalid signature' }).waitFor()

    await tabTo(page, 'Deliveries')
    await keyboard.press('Enter')
    await inspector.row(page, 2).waitFor()
    // From the sixth, which was open last.
    for (const _ of [5, 4, 3, 2]) await keyboard.press('j')
    await inspector.focusedRow(page, 2).waitFor()
    await keyboard.press('Enter')
    await inspector.number(page, 2).waitFor()
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
    await second.goto(`${desk.relay.address}/inspect/deliveries/1`)
    await expect.poll(() => second.getByRole('button', { name: 'Forward again' }).isEnabled()).toBe(true)
    await desk.tab.page.close()
    await second.evaluate('sessionStorage.clear()')
    await second.reload()
    await second.getByText('This tab can only read.').waitFor()
    expect(await second.getByRole('button', { name: 'Forward again' }).isEnabled()).toBe(false)
  })

  it('waits quietly while relay is away, says why it can do nothing, and goes on after a restart', async () => {
    await using desk = await openDesk()
    await sendThree(desk)
    const { page } = desk.tab
    const link = (name: string): Locator => page.getByRole('link', { name })
    await link('State').click()
    await inspector.cards(page).first().waitFor()
    await link('Deliveries').click()
    await inspector.rows(page).nth(3).waitFor()
    for (const n of [4, 3]) {
      await inspector.row(page, n).click()
      await inspector.number(page, n).waitFor()
      await inspector.payload(page).first().waitFor()
    }
    await page.keyboard.press('e')
    await inspector.focusedEditor(page).waitFor()
    await desk.relay.stop()
    await page.getByRole('dialog').getByText('relay is stopped').waitFor()
    expect(await page.getByRole('button', { name: 'Send', exact: true }).isEnabled()).toBe(false)
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    await page.getByText('relay stopped; waiting for it').waitFor()
    expect(await inspector.rows(page).count()).toBe(4)
    for (const name of ['Forward again', 'Edit and send', 'Copy as curl', 'Download fixture']) {
      const button = page.getByRole('button', { name, description: 'relay is stopped' })
      expect([name, await button.isEnabled()]).toEqual([name, false])
    }
    await page.keyboard.press('r')
    expect(await page.getByRole('dialog').count()).toBe(0)
    await inspector.row(page, 2).click()
    await page.getByText('#2 could not be read').waitFor()
    await link('State').click()
    await inspector.cards(page).first().waitFor()
    await page.goBack()
    for (const n of [3, 4]) {
      await page.goBack()
      await inspector.number(page, n).waitFor()
      await inspector.payload(page).first().waitFor()
    }

    const flags = ['--forward', `*=${desk.target.url}/hook`]
    await desk.here.serve(...SANDBOX, '--port', new URL(desk.relay.address).port, ...flags)
    await waitUntilLive(page)
    expect((await desk.here.run('trigger', 'push')).code).toBe(0)
    await inspector.row(page, 5).waitFor()
    await page.getByRole('button', { name: 'Forward again' }).click()
    const received = desk.target.received.length
    await page.getByRole('dialog').getByRole('button', { name: 'Forward again' }).click()
    await desk.target.has(received + 1)
  })
})

async function sendThree({ here, target }: Desk): Promise<void> {
  for (const event of ['push', 'push', 'pull_request.opened'])
    expect((await here.run('trigger', event)).code).toBe(0)
  await target.has(4)
}

/** One delivery while nothing listens at the target, which then gets it. */
async function takeDownAndBack({ here, target }: Desk, seenDown: () => Promise<void>): Promise<void> {
  await target.down()
  expect((await here.run('trigger', 'push')).code).toBe(0)
  await seenDown()
  await target.up()
  await target.has(5)
}

async function sendWronglySigned({ relay }: Desk): Promise<void> {
  const signature = `sha256=${'0'.repeat(64)}`
  const { status } = await relay.deliver({ body: '{}', set: { 'X-Hub-Signature-256': signature } })
  expect(status).toBe(401)
}

async function expectVerified({ here }: Desk, download: Download): Promise<void> {
  const file = path.join(emptyFolder(), 'one.json')
  await download.saveAs(file)
  expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject({ relay: 1, event: 'push' })
  const { code, err } = await here.run('verify', file)
  expect([code, err]).toEqual([0, expect.any(String)])
}

/** The delivery id of what a target received. */
function idOf({ received }: Receiver, index: number): string | undefined {
  const request = received[index]
  return request && valuesOf(request, 'X-GitHub-Delivery')[0]
}
