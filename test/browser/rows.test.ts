import type { Locator } from 'playwright-core'
import { expect, it } from 'vitest'
import { inspector, openDesk, openInspector } from '../kit/browser.js'
import { fill } from '../kit/journal.js'
import { describeWith } from '../kit/needs.js'
import { place } from '../kit/place.js'

describeWith('chromium', 'the rows of the inspector', () => {
  it('steps to the neighbour of a delivery that the list does not have, and moves the row of the open one into view', async () => {
    await using here = await place({ host: 'none' })
    const receivedAt = Date.now()
    await fill(
      here,
      Array.from({ length: 70 }, (_, i) => ({ id: `id-${i}`, receivedAt, event: i === 0 ? 'star' : 'push' })),
    )
    const relay = await here.serve()
    await using tab = await openInspector(here, relay)
    const { page } = tab
    // Not among the rows that are loaded, and not among those that its filter lets through.
    for (const path of ['8', '8?event=star']) {
      await page.goto(`${relay.address}/inspect/deliveries/${path}`)
      await inspector.rows(page).first().waitFor()
      for (const [key, n] of [
        ['j', 7],
        ['k', 8],
      ] as const) {
        await page.getByRole('link', { name: 'Older delivery' }).waitFor()
        await page.keyboard.press(key)
        await page.waitForURL(new RegExp(`/deliveries/${n}(?:$|\\?)`))
      }
    }
    await page.goto(`${relay.address}/inspect/deliveries/40`)
    await expect.poll(() => isInView(inspector.row(page, 40))).toBe(true)
    for (const n of [39, 38]) {
      await page.getByRole('link', { name: 'Older delivery' }).click()
      await inspector.number(page, n).waitFor()
      await expect.poll(() => isInView(inspector.row(page, n))).toBe(true)
    }
    expect(await inspector.focusedRow(page, 38).count()).toBe(0)
    await page.keyboard.press('j')
    await inspector.focusedRow(page, 37).waitFor()
    expect(tab.faults).toEqual([])
  })

  it('shows no row while a filter is refused, and why it is', async () => {
    await using tab = await openDesk({ bodies: ['{}', '{}'] })
    const { page } = tab
    await inspector.row(page, 1).waitFor()
    await page.getByLabel('Repository').fill('octo')
    await page.getByText('repository: must be owner/name').waitFor()
    expect(await inspector.rows(page).count()).toBe(0)
    expect(await page.getByText('could not be read').count()).toBe(0)
    await page.getByLabel('Repository').fill('')
    await inspector.row(page, 1).waitFor()
  })
})

/** Whether a row is wholly within the window. */
async function isInView(row: Locator): Promise<boolean> {
  const box = await row.boundingBox()
  return box !== null && box.y >= 0 && box.y + box.height <= 900
}
