import type { Browser, BrowserContextOptions, Page } from 'playwright-core'

/** Where an inspector is, and how a browser gets in. */
export interface Opening {
  readonly url: string
  /** A one-time code. */
  readonly code: () => Promise<string>
}

/** A tab in which the inspector is open, and what went wrong in it. */
export interface InspectorPage extends AsyncDisposable {
  readonly page: Page
  /** Violations of the Content Security Policy, errors on the console, errors of scripts, dialogs that a script opened. */
  readonly faults: readonly string[]
}

/** Opens the inspector with a one-time code, as a person does, and goes to `path`. */
export async function openInspector(
  browser: Browser,
  { url, code }: Opening,
  { path = '/inspect/', ...options }: BrowserContextOptions & { readonly path?: string } = {},
): Promise<InspectorPage> {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...options })
  const page = await context.newPage()
  const faults: string[] = []
  page.on('console', (message) => {
    if (message.type() === 'error') faults.push(message.text())
  })
  page.on('pageerror', ({ message }) => faults.push(message))
  page.on('dialog', (dialog) => {
    faults.push(`dialog: ${dialog.message()}`)
    void dialog.dismiss()
  })
  await page.goto(`${url}/inspect/open`)
  await page.getByLabel('Code').fill(await code())
  await page.getByRole('button', { name: 'Open' }).click()
  await page.waitForURL(`${url}/inspect/`)
  if (path !== '/inspect/') await page.goto(url + path)
  return { page, faults, [Symbol.asyncDispose]: () => context.close() }
}

/** Waits until the script has taken over, and what it shows is up to date. */
export async function waitUntilLive(page: Page): Promise<void> {
  await page.locator('.connection-live').waitFor()
}
