import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { launchBrowser } from '../helpers/browser.js'
import { describeWith } from '../helpers/needs.js'
import { type ScriptedServer, scriptedServer } from '../helpers/scripted-server.js'
import { authorizeUrl, start } from './rig.js'

/** Runs in the page, which has its own globals. */
const MEASURE = `({
  width: document.documentElement.scrollWidth,
  border: getComputedStyle(document.querySelector('header')).borderBottomStyle,
})`

describeWith('chromium', 'the sandbox in a browser', () => {
  let browser: Browser
  let application: ScriptedServer
  let callback: ScriptedServer
  beforeAll(async () => {
    browser = await launchBrowser()
    application = await scriptedServer(() => ({
      headers: { 'content-type': 'text/html' },
      body: 'application',
    }))
    // Like relay: the callback redirects the browser to an application at another address.
    const location = (): string => application.url.replace('127.0.0.1', 'localhost')
    callback = await scriptedServer(({ path }) => ({
      status: 302,
      headers: { location: `${location()}/app${new URL(path, 'http://x').search}` },
    }))
  })
  afterAll(async () => {
    await browser?.close()
    await callback?.[Symbol.asyncDispose]()
    await application?.[Symbol.asyncDispose]()
  })

  it.each([
    ['Authorize', ['code', 'state', 'iss']],
    ['Cancel', ['error', 'error_description', 'state', 'iss']],
  ])('%s goes through the callback to the application', async (button, names) => {
    await using sandbox = await start()
    const page = await browser.newPage()
    const problems: string[] = []
    page.on('console', (message) => problems.push(message.text()))
    await page.goto(authorizeUrl(sandbox, { redirect_uri: `${callback.url}/callback` }))
    expect(await page.title()).toBe('Authorize relay-test')
    await page.getByRole('button', { name: button }).click()
    await page.waitForURL(/\/app\?/)
    const { pathname, searchParams } = new URL(page.url())
    expect([pathname, [...searchParams.keys()]]).toEqual(['/app', names])
    expect([searchParams.get('state'), searchParams.get('iss')]).toEqual([
      'st&te=é',
      `${sandbox.url}/login/oauth`,
    ])
    expect(problems).toEqual([])
    await page.close()
  })

  it('applies its styles under its own policy, and fits a narrow window', async () => {
    await using sandbox = await start()
    const page = await browser.newPage({ viewport: { width: 360, height: 640 } })
    const problems: string[] = []
    page.on('console', (message) => problems.push(message.text()))
    for (const address of [authorizeUrl(sandbox), sandbox.url, `${sandbox.url}/octo/demo/pull/2`]) {
      await page.goto(address)
      const { width, border } = await page.evaluate<{ width: number; border: string }>(MEASURE)
      expect([width, border]).toEqual([360, 'solid'])
    }
    expect(problems.filter((problem) => !problem.includes('favicon'))).toEqual([])
    await page.close()
  })
})
