import { once } from 'node:events'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { launchBrowser } from '../helpers/browser.js'
import { openInspector, waitUntilLive } from '../helpers/inspector-page.js'
import { describeWith } from '../helpers/needs.js'
import { openRig, type Rig } from '../inspector/rig.js'
import { delivery } from '../journal/rig.js'

const MINUTE_MS = 60_000

describeWith('chromium', 'the list of the inspector', () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await launchBrowser()
  })
  afterAll(() => browser.close())

  it('selects a span of the last hour, with a pointer and with the keyboard', async () => {
    await using rig = await openRig()
    for (const minutes of [50, 30, 10]) await append(rig, { receivedAt: Date.now() - minutes * MINUTE_MS })
    await using tab = await openInspector(browser, rig)
    const { page } = tab
    const chart = page.getByRole('slider')
    await page.getByText('Last hour: 3 received, 0 failed').waitFor()

    // A few minutes around the one in the middle, since the minute can end meanwhile.
    const { x, y, width, height } = (await chart.boundingBox()) ?? { x: 0, y: 0, width: 0, height: 0 }
    const moveTo = (minute: number) =>
      page.mouse.move(x + (width * minute) / 60, y + height / 2, { steps: 5 })
    await moveTo(25.5)
    await page.mouse.down()
    await moveTo(33.5)
    await page.mouse.up()
    await expectOnly(page, '2')
    const { since = '', until = '' } = Object.fromEntries(new URL(page.url()).searchParams)
    expect(Date.parse(until) - Date.parse(since)).toBe(9 * MINUTE_MS)
    await page.getByText(': 1 received, 0 failed').waitFor()
    await page.getByRole('button', { name: 'all times' }).click()
    await page.locator('.rows .row').nth(2).waitFor()
    expect(new URL(page.url()).search).toBe('')

    await chart.focus()
    for (const key of ['PageUp', 'ArrowLeft', 'ArrowLeft', 'ArrowLeft']) await page.keyboard.press(key)
    for (let i = 0; i < 6; i++) await page.keyboard.press('Shift+ArrowRight')
    expect(await chart.getAttribute('aria-valuetext')).toMatch(
      /^\d\d:\d\d to \d\d:\d\d: 1 received, 0 failed$/,
    )
    await page.keyboard.press('Enter')
    await expectOnly(page, '3')
    await page.keyboard.press('Escape')
    await page.locator('.rows .row').nth(2).waitFor()
    expect(tab.faults).toEqual([])
  })

  it('keeps its place while deliveries arrive above it, counts them, and shows them when asked', async () => {
    await using rig = await openRig()
    await Promise.all(Array.from({ length: 90 }, () => append(rig)))
    await using tab = await openInspector(browser, rig)
    const { page } = tab
    await page.locator('.row[data-n="90"]').waitFor()
    await waitUntilLive(page)
    await page.locator('.row[data-n="85"]').hover()
    await page.mouse.wheel(0, 1500)
    await page.locator('.row[data-n="90"]').waitFor({ state: 'detached' })
    await page.locator('.row[data-n="60"]').waitFor()
    const place = await page.locator('.row[data-n="60"]').boundingBox()
    for (let i = 0; i < 3; i++) await rig.deliver()
    const pill = page.getByRole('button', { name: '3 new' })
    await pill.waitFor()
    expect(await page.locator('.row[data-n="60"]').boundingBox()).toEqual(place)
    expect(await page.locator('.row[data-n="93"]').count()).toBe(0)
    await pill.click()
    await page.locator('.rows li:first-child .row[data-n="93"]').waitFor()
    await pill.waitFor({ state: 'detached' })
    expect(tab.faults).toEqual([])
  })

  it('keeps showing a delivery that retention removes meanwhile, and says so', async () => {
    await using rig = await openRig()
    for (const zen of ['one', 'two']) await rig.deliver({ body: JSON.stringify({ zen }) })
    await using tab = await openInspector(browser, rig, { path: '/inspect/deliveries/1' })
    const { page } = tab
    await page.getByRole('treeitem', { name: 'zen: "one"' }).waitFor()
    await page.locator('.row[data-n="1"]').waitFor()
    await waitUntilLive(page)
    await rig.serving.relay.journal.sweep({ keep: 0, keepMax: 0, now: Date.now() + 1000 })
    await page.getByText('Retention removed #1 from the journal.').waitFor()
    await page.locator('.row[data-n="1"]').waitFor({ state: 'detached' })
    expect(await page.getByRole('treeitem', { name: 'zen: "one"' }).count()).toBe(1)
    expect(await page.locator('.row[data-n="2"]').count()).toBe(1)
    expect(tab.faults.filter((fault) => !fault.includes('404'))).toEqual([])
  })

  it('leaves the focus in a field in which the user types while a delivery loads', async () => {
    await using rig = await openRig()
    await rig.deliver({ body: '{"zen":"one"}' })
    await using tab = await openInspector(browser, rig)
    const { page } = tab
    const typed = new AbortController()
    await page.route('**/api/deliveries/1', async (route) => {
      if (!typed.signal.aborted) await once(typed.signal, 'abort')
      await route.continue()
    })
    const asked = page.waitForRequest('**/api/deliveries/1')
    await page.locator('.row[data-n="1"]').click()
    await asked
    await page.keyboard.press('/')
    await page.keyboard.type('ze')
    typed.abort()
    await page.getByRole('treeitem', { name: 'zen: "one"' }).waitFor()
    await page.keyboard.type('n')
    await page.waitForURL('**/deliveries/1?text=zen')
    expect(tab.faults).toEqual([])
  })

  it('asks before an edit is lost', async () => {
    await using rig = await openRig()
    await rig.deliver({ body: '{"zen":"one"}' })
    await using tab = await openInspector(browser, rig, { path: '/inspect/deliveries/1' })
    const { page, faults } = tab
    const edit = page.getByRole('dialog', { name: 'Edit #1 and send' })
    await page.getByRole('button', { name: 'Edit and send' }).click()
    await page.locator('.cm-content:focus').waitFor()
    await page.keyboard.press('Escape')
    await edit.waitFor({ state: 'detached' })
    expect(faults).toEqual([])

    await page.getByRole('button', { name: 'Edit and send' }).click()
    await page.locator('.cm-content:focus').waitFor()
    await page.keyboard.insertText('changed')
    for (const close of [() => page.keyboard.press('Escape'), () => page.mouse.click(5, 5)]) {
      // The answer is no.
      const asked = page.waitForEvent('dialog')
      await close()
      await asked
      await page.locator('.cm-content', { hasText: 'changed' }).click()
    }
    const question = 'dialog: Close without sending? Your edit is lost.'
    expect(faults).toEqual([question, question])
  })

  it('compares two deliveries: one that is offered, or any by its number', async () => {
    await using rig = await openRig()
    const bodies = [{ zen: 'one', same: 1 }, { other: true }, { zen: 'two', same: 1, added: [2] }]
    for (const [i, body] of bodies.entries())
      await rig.deliver({ id: `id-${i + 1}`, body: JSON.stringify(body) })
    await using tab = await openInspector(browser, rig, { path: '/inspect/deliveries/3' })
    const { page } = tab
    await page.getByRole('button', { name: 'Compare with…' }).click()
    const dialog = page.getByRole('dialog', { name: 'Compare #3 with' })
    await dialog.getByRole('button', { name: '#1 push' }).click()
    await page.waitForURL('**/deliveries/3/compare/1')
    const values = page.getByRole('list', { name: 'Values that differ' }).getByRole('listitem')
    await values.first().waitFor()
    expect(await values.allTextContents()).toEqual(['zen− removed: "one"+ added: "two"', 'added+ added: [2]'])
    const headers = page.getByRole('list', { name: 'Headers that differ' }).getByRole('listitem')
    expect((await headers.allTextContents()).map((text) => text.split('−')[0])).toEqual([
      'x-github-delivery',
      'x-hub-signature-256',
      'content-length',
    ])
    await page.keyboard.press('Escape')
    await page.waitForURL('**/deliveries/3')

    await page.getByRole('button', { name: 'Compare with…' }).click()
    await dialog.locator('[data-first]:focus').waitFor()
    await page.keyboard.type('2')
    await page.keyboard.press('Enter')
    await page.waitForURL('**/deliveries/3/compare/2')
    expect(tab.faults).toEqual([])
  })

  it('can be open in more tabs than a browser has connections, and is up to date when shown', async () => {
    await using rig = await openRig()
    await using tab = await openInspector(browser, rig)
    await waitUntilLive(tab.page)
    for (let i = 0; i < 6; i++) {
      const other = await tab.page.context().newPage()
      await other.goto(`${rig.url}/inspect/`)
      await waitUntilLive(other)
      await setHidden(other, true)
    }
    await setHidden(tab.page, true)
    await rig.deliver()
    await expect(rig.deliver({ secret: 'wrong' })).rejects.toThrow('401')
    await setHidden(tab.page, false)
    await tab.page.locator('.row[data-n="1"]').waitFor()
    await tab.page.getByRole('link', { name: 'Refused 1' }).waitFor()
    await waitUntilLive(tab.page)
    expect(tab.faults).toEqual([])
  })
})

async function append({ serving }: Rig, more: Parameters<typeof delivery>[1] = {}): Promise<void> {
  await serving.relay.journal.append(delivery(crypto.randomUUID(), { receivedAt: Date.now(), ...more }))
}

/** Waits until the list has this delivery only. */
async function expectOnly(page: Page, n: string): Promise<void> {
  const numbers = () => page.locator('.rows .row').evaluateAll((rows) => rows.map((row) => row.dataset['n']))
  await expect.poll(numbers).toEqual([n])
}

/** As another tab in front of it does. Chromium without a window calls every tab visible. */
async function setHidden(page: Page, isHidden: boolean): Promise<void> {
  await page.evaluate(`
    Object.defineProperty(document, 'hidden', { configurable: true, value: ${isHidden} })
    document.dispatchEvent(new Event('visibilitychange'))
  `)
}
