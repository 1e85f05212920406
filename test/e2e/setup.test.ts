import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { readStoredApp, readStoredClient } from '../../src/setup/record.js'
import { openDatabase } from '../../src/store/open.js'
import { startSandbox } from '../../src/testing/index.js'
import { createTokens } from '../../src/tokens/tokens.js'
import { launchBrowser } from '../helpers/browser.js'
import { emptyFolder } from '../helpers/context.js'
import { describeWith } from '../helpers/needs.js'
import { Pane } from '../helpers/pane.js'
import { closedPort } from '../helpers/scripted-server.js'

/** The address that a command has printed for the browser, the newest of several. */
async function printed(pane: Pane, part: RegExp): Promise<string> {
  await pane.shows(part)
  const addresses = pane.unbroken().match(/^ {2}http\S+$/gm) ?? []
  return (addresses.at(-1) ?? '').trim()
}

/** The command lines of every process that this user can see. */
function commandLines(): string {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  return pids.map((pid) => readOr(`/proc/${pid}/cmdline`)).join('\n')
}

function readOr(file: string): string {
  try {
    return readFileSync(file, 'latin1')
  } catch {
    // The process has ended.
    return ''
  }
}

/** Every secret that setup and the sign-in after it have stored, by what it is. */
async function secretsOf(home: string, providerUrl: string): Promise<Record<string, string>> {
  const folder = path.join(home, 'default')
  await using database = await openDatabase({ kind: 'file', folder })
  const { store } = database
  const [stored, app] = [await readStoredClient(store), await readStoredApp(store, providerUrl)]
  const owner = await createTokens(store).get('ada')
  return {
    client: stored?.client.secret.reveal() ?? '',
    key: app?.privateKey.reveal().split('\n')[1] ?? '',
    webhook: readFileSync(path.join(folder, 'webhook-secret'), 'utf8').trim(),
    token: owner?.accessToken ?? '',
  }
}

describeWith(['chromium', 'tmux'], 'a person who sets relay up', () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await launchBrowser()
  })
  afterAll(() => browser.close())

  /** Presses a button or a link of the page, and waits for the next page. */
  async function press(page: Page, role: 'button' | 'link', name: string | RegExp): Promise<void> {
    await page.getByRole(role, { name }).click()
    await page.waitForLoadState()
  }

  it('goes from an empty data folder to signed in, and copies no value by hand', async () => {
    await using sandbox = await startSandbox()
    const home = emptyFolder()
    const env = {
      RELAY_HOME: home,
      RELAY_USER: 'ada',
      RELAY_PROVIDER: 'sandbox',
      RELAY_PROVIDER_URL: sandbox.url,
      RELAY_PORT: String(await closedPort()),
    }
    const began = performance.now()
    using pane = new Pane('relay setup --no-browser && relay login --no-browser && relay whoami', {
      width: 160,
      height: 60,
      env,
    })
    const page = await browser.newPage()
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

    const secrets = await secretsOf(home, sandbox.url)
    // Each is there, and long enough to be found by chance nowhere.
    expect(Object.entries(secrets).filter(([, secret]) => secret.length < 36)).toEqual([])
    const paths = JSON.stringify(sandbox.requests.map(({ path }) => path))
    const seen = pane.text() + lines + commandLines() + paths
    const shown = Object.entries(secrets).filter(([, secret]) => seen.includes(secret))
    expect(shown.map(([name]) => name)).toEqual([])
    await page.close()
  })

  it('types the secret of an OAuth app, which the terminal does not show, and Ctrl-C ends at each question', async () => {
    await using sandbox = await startSandbox({ client: { id: 'by-hand', secret: 'typed-canary-secret' } })
    const home = emptyFolder()
    const env = { RELAY_HOME: home, RELAY_PROVIDER: 'sandbox', RELAY_PROVIDER_URL: sandbox.url }
    const size = { width: 160, height: 60, env }
    const script = 'trap : INT; relay setup --oauth-app --no-browser; echo "exit $?"'
    {
      using pane = new Pane(script, size)
      await pane.shows(/Client id:/)
      pane.press('C-c')
      await pane.shows(/exit 130/)
    }
    {
      using pane = new Pane(script, size)
      await pane.shows(/Client id:/)
      pane.press('by-hand', 'Enter')
      await pane.shows(/Client secret \(not shown\):/)
      pane.press('C-c')
      await pane.shows(/exit 130/)
    }
    expect(readdirSync(home)).toEqual([])
    using pane = new Pane(script, size)
    await pane.shows(/Client id:/)
    for (const value of [
      /Homepage URL +http:\/\/127\.0\.0\.1:8787$/m,
      /Authorization callback URL +http:\/\/127\.0\.0\.1:8787\/auth\/sandbox\/callback$/m,
    ])
      expect(pane.text()).toMatch(value)
    expect(pane.text()).toContain(`\n  ${sandbox.url}/`)
    pane.press('by-hand', 'Enter')
    await pane.shows(/Client secret \(not shown\):/)
    pane.press('typed-canary-secret', 'Enter')
    await pane.shows(/exit 0/)
    expect(pane.text()).not.toContain('typed-canary')
    expect(pane.text()).toContain(`client id by-hand (setup); ${sandbox.url} knows it`)
    const folder = path.join(home, 'default')
    await using database = await openDatabase({ kind: 'file', folder })
    expect((await readStoredClient(database.store))?.client.secret.reveal()).toBe('typed-canary-secret')
  })
})
