import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { newPage } from '../kit/browser.js'
import { canary } from '../kit/canary.js'
import { describeWith } from '../kit/needs.js'
import { Pane } from '../kit/pane.js'
import { place } from '../kit/place.js'
import { closedPort } from '../kit/ports.js'
import { commandLines } from '../kit/processes.js'
import { sentSecrets, tapRequests } from '../kit/tap.js'

/** The address that a command has printed for the browser, the newest of several. */
async function printed(pane: Pane, part: RegExp): Promise<string> {
  await pane.shows(part)
  const addresses = pane.unbroken().match(/^ {2}http\S+$/gm) ?? []
  return (addresses.at(-1) ?? '').trim()
}

/** Presses a button or a link of the page, and waits for the next page. */
async function press(page: Page, role: 'button' | 'link', name: string | RegExp): Promise<void> {
  await page.getByRole(role, { name }).click()
  await page.waitForLoadState()
}

describeWith(['chromium', 'tmux', 'Linux'], 'a person who sets relay up', () => {
  it('goes from an empty data folder to signed in, copies no value by hand, and sees no secret', async () => {
    const RELAY_PORT = String(await closedPort())
    const env = { RELAY_PORT, RELAY_CLIENT_ID: undefined, RELAY_CLIENT_SECRET: undefined }
    await using here = await place({ env: { ...env, RELAY_WEBHOOK_SECRET: undefined } })
    const { sandbox } = here
    using tap = tapRequests(Number(new URL(sandbox.url).port))
    const began = performance.now()
    await using pane = new Pane('relay setup --no-browser && relay login --no-browser && relay whoami', {
      width: 160,
      height: 60,
      env: here.env,
    })
    await using tab = await newPage()
    const { page } = tab
    await page.goto(await printed(pane, /\/setup\/\S+/))
    await press(page, 'button', /^Continue to 127\.0\.0\.1/)
    await press(page, 'button', /^Create GitHub App/)
    expect(await page.getByRole('heading').textContent()).toBe('The App is registered')
    await press(page, 'link', 'Install it on your repositories')
    await press(page, 'button', 'Install')
    expect(await page.getByRole('heading').textContent()).toMatch(/is installed$/)

    await page.goto(await printed(pane, /\/auth\/sandbox\?\S+/))
    const lines = commandLines()
    await press(page, 'button', 'Authorize')
    await pane.ended()
    const took = performance.now() - began
    expect(pane.text()).toContain(`signed in as octo at ${sandbox.url}, for user ada`)
    expect(took).toBeLessThan(60_000)

    const secrets = canary()
    secrets.secrets(sentSecrets(tap.requests))
    secrets.text('terminal', pane.text())
    secrets.text('process list', `${lines}\n${commandLines()}`)
    secrets.text('addresses', sandbox.requests.map(({ path }) => path).join('\n'))
    expect(() =>
      secrets.check([
        'App key',
        'PKCE verifier',
        'access token',
        'client secret',
        'refresh token',
        'webhook secret',
      ]),
    ).not.toThrow()
  })
})
