import { expect, it } from 'vitest'
import { inspector, openInspector, waitUntilLive } from '../kit/browser.js'
import { linesOf } from '../kit/journal.js'
import { describeWith } from '../kit/needs.js'
import { place } from '../kit/place.js'
import { receiver } from '../kit/receiver.js'

/** Longer than the test. Milliseconds. */
const NEVER = { retries: [60_000], probe: 60_000 }

describeWith('chromium', 'a delivery that waits, in the inspector', () => {
  it('says why in its row and on its page, and "Stop trying" ends it', async () => {
    await using here = await place({ host: 'none' })
    await using target = await receiver(500)
    const relay = await here.serveWith({ seams: { limits: NEVER } }, '--forward', `app=*=${target.url}`)
    await using tab = await openInspector(here, relay)
    const { page } = tab
    await waitUntilLive(page)
    await relay.deliver({ id: 'a' })
    const row = inspector.row(page, 1)
    await row.getByTitle(/^app: waiting: tried again at /).waitFor()
    await row.click()
    await page.getByText(/^waiting: tried again at /).waitFor()
    await page.getByRole('button', { name: 'Stop trying' }).click()
    await page.getByText('skipped').first().waitFor()
    await page.getByRole('button', { name: 'Stop trying' }).waitFor({ state: 'detached' })
    expect(await linesOf(here)).toMatchObject([{ n: 1, targets: [{ state: 'failed', reason: 'skipped' }] }])
    await target.down()
    await relay.deliver({ id: 'b' })
    await relay.deliver({ id: 'c' })
    // The second one was not tried, and says it too once the target is known to be down.
    for (const n of [2, 3])
      await inspector.row(page, n).getByTitle('app: waiting: down: connection refused').waitFor()
    expect(target.received).toHaveLength(1)
    expect(tab.faults).toEqual([])
  })
})
