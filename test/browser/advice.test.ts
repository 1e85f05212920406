import { expect, it } from 'vitest'
import { adviceIn, commandsOf, follow, machine, PROFILES, serve } from '../kit/advice.js'
import { inspector, newPage, openInspector } from '../kit/browser.js'
import { describeWith } from '../kit/needs.js'

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
    await running.stop()
    const advised = adviceIn(said, commands)
    expect(advised.map(([command]) => command)).toEqual(
      expect.arrayContaining(['inspect', 'serve', 'hook', 'login']),
    )
    await follow(here, advised, profile)
  })
})
