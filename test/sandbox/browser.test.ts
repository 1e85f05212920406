import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { launchBrowser } from '../helpers/browser.js'
import { describeWith } from '../kit/needs.js'
import { type ScriptedServer, scriptedServer } from '../helpers/scripted-server.js'
import { authorizeUrl, CLIENT, json, start } from './rig.js'

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

  it('signs a device in with the code that the user types', async () => {
    await using sandbox = await start()
    const post = (path: string, fields: Record<string, string>) =>
      fetch(sandbox.url + path, {
        method: 'POST',
        headers: { accept: 'application/json' },
        body: new URLSearchParams({ client_id: CLIENT.id, ...fields }),
      })
    const { user_code, verification_uri, device_code } = await json<Record<string, string>>(
      post('/login/device/code', { scope: 'repo' }),
    )
    const page = await browser.newPage()
    await page.goto(verification_uri ?? '')
    await page.getByLabel('Code').fill(user_code ?? '')
    await page.keyboard.press('Enter')
    await page.getByRole('button', { name: 'Authorize' }).click()
    await page.getByRole('heading', { name: 'You are signed in' }).waitFor()
    await page.close()
    const grant_type = 'urn:ietf:params:oauth:grant-type:device_code'
    const poll = post('/login/oauth/access_token', { device_code: device_code ?? '', grant_type })
    expect(await json(poll)).toMatchObject({ scope: 'repo' })
  })

  it('applies its styles under its own policy, and fits a narrow window', async () => {
    await using sandbox = await start()
    const page = await browser.newPage({ viewport: { width: 360, height: 640 } })
    const problems: string[] = []
    page.on('console', (message) => problems.push(message.text()))
    const paths = ['/', '/octo/demo/pull/2', '/login/device', '/settings/tokens/new']
    for (const address of [authorizeUrl(sandbox), ...paths.map((path) => sandbox.url + path)]) {
      await page.goto(address)
      const { width, border } = await page.evaluate<{ width: number; border: string }>(MEASURE)
      expect([width, border]).toEqual([360, 'solid'])
    }
    expect(problems.filter((problem) => !problem.includes('favicon'))).toEqual([])
    await page.close()
  })
})
