import { expect, it } from 'vitest'
import { inspector, openDesk } from '../kit/browser.js'
import { post } from '../kit/delivery.js'
import { describeWith } from '../kit/needs.js'

describeWith('chromium', 'the dialogs of the inspector', () => {
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
