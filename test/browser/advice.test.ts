import { expect, it } from 'vitest'
import type { Page } from 'playwright-core'
import { adviceIn, commandsOf, follow, machine, PROFILES, serve } from '../kit/advice.js'
import { inspector, newPage, openInspector } from '../kit/browser.js'
import { describeWith } from '../kit/needs.js'
import type { Place, Serving } from '../kit/place.js'

/** The texts about a delivery without a target: on its page, in the dialog, in a tab that can only read, and when relay does not answer. */
async function aboutDelivery(
  here: Place,
  page: Page,
  { address }: Serving,
  named: readonly string[],
): Promise<string[]> {
  await here.run('trigger', 'push', ...named)
  const delivery = `${address}/inspect/deliveries/1`
  await page.goto(delivery)
  const forward = page.getByRole('button', { name: 'Forward again' })
  const none = await page.getByText('No route matches this delivery.').first().innerText()
  await forward.click()
  const inDialog = await page.getByRole('dialog').locator('pre.command').innerText()
  await page.evaluate('sessionStorage.clear()')
  await page.reload()
  const banner = await page.getByText('This tab can only read.').innerText()
  const tooltip = await forward.getAttribute('title')
  await page.route('**/api/deliveries/1', (route) => route.abort())
  await page.reload()
  const away = await page.getByText('relay does not answer.').first().innerText()
  const texts = [none, inDialog, banner, tooltip ?? '', away]
  expect(texts.filter((text) => /\brelay (?:serve|inspect)\b/.test(text))).toEqual(texts)
  return texts
}

describeWith('chromium', 'what the inspector says to run', () => {
  it.each(Object.entries(PROFILES))('works in the profile %s', async (_, profile) => {
    await using here = await machine()
    const commands = await commandsOf(here)
    const running = await serve(here, profile.serve)
    await using stranger = await newPage()
    await stranger.page.goto(`${running.address}/inspect/open`)
    const said = await stranger.page.locator('main code').allInnerTexts()
    expect(said).toHaveLength(2)
    await using tab = await openInspector(here, running, { path: '/inspect/state' })
    const { page } = tab
    await page.locator('pre.command').first().waitFor()
    said.push(...(await page.locator('pre.command').allInnerTexts()))
    await page.goto(`${running.address}/inspect/`)
    // A sandbox has announced its hook already.
    await page.locator('main pre.command').or(inspector.rows(page)).first().waitFor()
    said.push(...(await page.locator('main pre.command, main .empty code').allInnerTexts()))
    said.push(...(await aboutDelivery(here, page, running, profile.named)))
    await running.stop()
    const advised = adviceIn(said, commands)
    expect(advised.map(([command]) => command)).toEqual(
      expect.arrayContaining(['inspect', 'serve', 'hook', 'login']),
    )
    await follow(here, advised, profile)
  })
})
