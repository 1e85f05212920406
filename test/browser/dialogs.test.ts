import { expect, it } from 'vitest'
import { inspector, openDesk } from '../kit/browser.js'
import { post } from '../kit/delivery.js'
import { describeWith } from '../kit/needs.js'
import { receiver } from '../kit/receiver.js'

describeWith('chromium', 'the dialogs of the inspector', () => {
  it('closes a dialog in every way with the focus where it was, and asks each time before an edit is lost', async () => {
    await using target = await receiver()
    await using tab = await openDesk({ flags: ['--forward', `*=${target.url}`], bodies: ['{"zen":"one"}'] })
    const { page } = tab
    await inspector.row(page, 1).click()
    const dialog = page.getByRole('dialog')
    const ways = {
      x: () => dialog.getByRole('button', { name: 'Close' }).click(),
      backdrop: () => page.mouse.click(5, 5),
      escape: () => page.keyboard.press('Escape'),
      choice: () => dialog.getByRole('button', { name: 'Forward again' }).click(),
    }
    for (const [name, close] of Object.entries(ways)) {
      await page.getByRole('button', { name: 'Forward again' }).click()
      await inspector.firstOfDialog(page).waitFor()
      await close()
      await dialog.waitFor({ state: 'detached' })
      expect([name, await page.locator(':focus').allTextContents()]).toEqual([name, ['Forward again']])
    }

    const question = 'dialog: Close without sending? Your edit is lost.'
    await page.getByRole('button', { name: 'Edit and send' }).click()
    await inspector.focusedEditor(page).waitFor()
    await inspector.editedHeaders(page).locator('summary').click()
    const headers = page.getByLabel('Headers, one a line')
    const given = await headers.inputValue()
    await headers.fill(`${given}\nX-Mine: by hand`)
    for (const asked of [1, 2, 3]) {
      await page.keyboard.press('Escape')
      await expect.poll(() => tab.faults).toEqual(Array.from({ length: asked }, () => question))
    }
    await page.evaluate('history.back()')
    await expect.poll(() => tab.faults.length).toBe(4)
    await page.waitForURL('**/deliveries/1')
    expect(await headers.inputValue()).toBe(`${given}\nX-Mine: by hand`)
    await headers.fill(given)
    await page.keyboard.press('Escape')
    await dialog.waitFor({ state: 'detached' })

    await page.getByRole('button', { name: 'Compare with' }).click()
    await inspector.firstOfDialog(page).waitFor()
    await page.evaluate('history.back()')
    await dialog.waitFor({ state: 'detached' })
    await inspector.focusedRow(page, 1).waitFor()
    expect(tab.faults).toEqual(Array.from({ length: 4 }, () => question))
  })

  it('sends an edited copy of compact JSON compact, with each number as it was written, and what is not changed as it came', async () => {
    await using target = await receiver()
    // Laid out, it is more than relay accepts.
    const body = `{"first":1e400,"list":${JSON.stringify(Array.from({ length: 60_000 }, () => [['']]))}}`
    await using tab = await openDesk({
      flags: ['--forward', `*=${target.url}`],
      bodies: [body, '{ "b":1 }\r\n'],
      path: '/inspect/deliveries/1',
    })
    const { page } = tab
    await page.getByRole('button', { name: 'Edit and send' }).click()
    await inspector.focusedEditor(page).waitFor()
    for (const key of ['Control+Home', 'ArrowDown', 'End', 'ArrowLeft', '0']) await page.keyboard.press(key)
    await page.getByRole('button', { name: 'Send', exact: true }).click()
    await page.waitForURL('**/deliveries/3')
    await target.has(3)
    expect(target.received[2]?.body.toString() === body.replace('1e400', '1e4000')).toBe(true)

    await page.goto(`${tab.relay.address}/inspect/deliveries/2`)
    await page.getByRole('button', { name: 'Edit and send' }).click()
    await inspector.focusedEditor(page).waitFor()
    await inspector.editedHeaders(page).locator('summary').click()
    await page.getByLabel('Headers, one a line').fill('Content-Type: application/json')
    await page.getByRole('button', { name: 'Send', exact: true }).click()
    await page.waitForURL('**/deliveries/4')
    await target.has(4)
    expect(target.received[3]?.body.toString()).toBe('{ "b":1 }\r\n')
    expect(tab.faults).toEqual([])
  })

  it('gives advice that fits a delivery of another source, one that is ignored, and what cannot be edited', async () => {
    const flags = ['--exec', 'push=false', '--source', 'open=none', '--ignore', 'ping']
    await using tab = await openDesk({ flags, bodies: ['{"zen":"one"}'], path: '/inspect/deliveries/1' })
    const { page, relay } = tab
    const dialog = page.getByRole('dialog')
    await relay.deliver({ id: 'ignored', event: 'ping' })
    for (const [type, body] of [
      ['application/json', '{}'],
      ['text/plain', 'hello'],
    ] as const) {
      const headers = [['Content-Type', type]] as const
      await post(`${relay.address}/webhook/open`, { headers, body: Buffer.from(body) })
    }
    const press = async (n: number, name: string): Promise<void> => {
      await page.goto(`${relay.address}/inspect/deliveries/${n}?event=no_such`)
      await page.getByRole('button', { name }).click({ force: true })
    }
    await page.getByText('failedexit 1').waitFor()
    expect(await page.getByRole('region', { name: 'Targets' }).getByText(/exit/).count()).toBe(1)
    await press(2, 'Forward again')
    await dialog.getByText('ignored by ping').waitFor()
    expect(await dialog.getByText('relay serve').count()).toBe(0)
    await press(3, 'Forward again')
    await dialog.getByText("relay serve --forward 'open/*=http://localhost:3000/webhook'").waitFor()
    await press(4, 'Edit and send')
    await page.getByRole('status').getByText('Only a JSON payload can be edited.').waitFor()

    await press(3, 'Edit and send')
    await dialog.getByText('Not signed, since its source has no secret').waitFor()
    await inspector.focusedEditor(page).waitFor()
    await page.keyboard.press('Control+a')
    await page.keyboard.insertText('{"zen":"two"}')
    await page.getByRole('button', { name: 'Send', exact: true }).click()
    await page.getByText('edited copy of #3, not signed: its source has no secret').waitFor()
    await press(5, 'Compare with')
    const offered = async () =>
      (await dialog.getByRole('listitem').allTextContents()).map((text) => text.slice(0, 15))
    await expect.poll(offered).toEqual(['#3 the original', expect.stringMatching(/^#4 open webhook/)])
    await dialog.getByText('the original').click()
    await page.getByRole('heading', { name: '#3 and #5 compared' }).waitFor()
    expect(tab.faults).toEqual([])
  })
})
