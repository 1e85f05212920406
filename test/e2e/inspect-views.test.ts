import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { launchBrowser } from '../helpers/browser.js'
import { openInspector, waitUntilLive } from '../helpers/inspector-page.js'
import { describeWith } from '../helpers/needs.js'
import { startTarget, type TargetServer } from '../helpers/target.js'
import { openRig, type Rig } from '../inspector/rig.js'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const FIND_VIOLATIONS = readFileSync('test/helpers/find-violations.js', 'utf8')
const FIND_OVERFLOW = readFileSync('test/helpers/find-overflow.js', 'utf8')

/** Text that would act if it became markup, hide itself, or change how what is around it looks. */
const NASTY = '<img src=x onerror=alert(1)><script>alert(2)</script>"\'&amp;\u202e\u0007'

/** Every view, by its address and what is there once it is shown. */
const VIEWS = [
  { name: 'the list', path: '/inspect/', shown: '.rows .row' },
  { name: 'a list that nothing matches', path: '/inspect/?event=no_such', shown: '.empty-title' },
  { name: 'a delivery', path: '/inspect/deliveries/3', shown: '.tree-row' },
  {
    name: 'a delivery that is not there',
    path: '/inspect/deliveries/999',
    shown: '.pane-detail .empty-title',
  },
  { name: 'two deliveries compared', path: '/inspect/deliveries/3/compare/1', shown: '.changes li' },
  { name: 'the refused requests', path: '/inspect/refused', shown: '.row-refused' },
  { name: 'a refused request', path: '/inspect/refused/1', shown: '.detail .sentences li' },
  { name: 'the page that asks for a code', path: '/inspect/open', shown: '.gate' },
  { name: 'the state', path: '/inspect/state', shown: '.card' },
] as const

const SIZES = [
  { width: 360, height: 740 },
  { width: 800, height: 600 },
  { width: 1440, height: 900 },
  { width: 2560, height: 1300 },
  // 1440 px at a zoom of 200 %, which makes the page's own pixels larger, and so fewer.
  { width: 720, height: 450 },
]

describeWith('chromium', 'the views of the inspector', () => {
  let browser: Browser
  let rig: Rig
  let target: TargetServer
  beforeAll(async () => {
    browser = await launchBrowser()
    target = await startTarget(({ path }) => (path === '/broken' ? { status: 422, body: NASTY } : 200))
    const forward = [`*=${target.url}/works`, `issues.*=${target.url}/broken`, 'push=http://127.0.0.1:9/down']
    rig = await openRig({ routes: { forward, exec: [], ignore: ['star'] } })
    await rig.deliver({ event: 'push', body: JSON.stringify({ ref: 'refs/heads/main', text: NASTY }) })
    await rig.deliver({ event: 'issues', body: JSON.stringify(issue('octo/demo')) })
    await rig.deliver({ event: 'issues', body: JSON.stringify(issue(`octo/${'long-name-'.repeat(9)}`)) })
    await fetch(`${rig.url}/webhook`, {
      method: 'POST',
      body: NASTY,
      headers: {
        'X-GitHub-Event': 'push',
        'X-GitHub-Delivery': 'x',
        'X-Hub-Signature-256': `sha256=${'0'.repeat(64)}`,
      },
    })
  })
  afterAll(async () => {
    await rig[Symbol.asyncDispose]()
    await target[Symbol.asyncDispose]()
    await browser.close()
  })

  const open = (options: Parameters<typeof openInspector>[2]) => openInspector(browser, rig, options)

  describe.each(VIEWS)('$name', ({ path, shown }) => {
    it('breaks no rule of axe-core, light and dark', async () => {
      await using tab = await open({ path, reducedMotion: 'reduce' })
      await tab.page.locator(shown).first().waitFor()
      for (const colorScheme of ['light', 'dark'] as const) {
        await tab.page.emulateMedia({ colorScheme })
        expect(await violations(tab.page)).toEqual([])
      }
      expect(tab.faults.filter((fault) => !fault.includes('404'))).toEqual([])
    })

    it('cuts nothing off, and scrolls only code sideways, at any width', async () => {
      await using tab = await open({ path, reducedMotion: 'reduce' })
      await tab.page.locator(shown).first().waitFor()
      for (const size of SIZES) {
        await tab.page.setViewportSize(size)
        expect({ size, found: await tab.page.evaluate(FIND_OVERFLOW) }).toEqual({ size, found: [] })
      }
    })
  })

  it.each([
    ['?', 'Keys'],
    ['r', 'Forward #3 again'],
    ['e', 'Edit #3 and send'],
  ])('the dialog of the key %s breaks no rule of axe-core, light and dark', async (key, title) => {
    await using tab = await open({ path: '/inspect/deliveries/3', reducedMotion: 'reduce' })
    await tab.page.locator('.tree-row').first().waitFor()
    await tab.page.keyboard.press(key)
    await tab.page.getByRole('dialog', { name: title }).waitFor()
    if (key === 'e') await tab.page.locator('.cm-content').waitFor()
    for (const colorScheme of ['light', 'dark'] as const) {
      await tab.page.emulateMedia({ colorScheme })
      expect(await violations(tab.page)).toEqual([])
    }
    expect(tab.faults).toEqual([])
  })

  it('says how to send a first delivery while there is none', async () => {
    await using own = await openRig()
    await using tab = await openInspector(browser, own)
    await tab.page.getByText('No deliveries yet').waitFor()
    expect(await violations(tab.page)).toEqual([])
    await own.deliver()
    await tab.page.locator('.rows .row').waitFor()
    expect(await tab.page.getByText('No deliveries yet').count()).toBe(0)
    expect(tab.faults).toEqual([])
  })

  it('can be read without JavaScript: the list, its filters, a delivery, refused requests, the state', async () => {
    const context = await browser.newContext({ javaScriptEnabled: false })
    const page = await context.newPage()
    await page.goto(`${rig.url}/inspect/open`)
    await page.getByLabel('Code').fill(await rig.code())
    await page.getByRole('button', { name: 'Open' }).click()
    await page.waitForURL(`${rig.url}/inspect/`)
    expect(await page.locator('.rows .row').count()).toBe(3)
    await page.getByPlaceholder('any event').fill('push')
    await page.getByRole('button', { name: 'Apply' }).click()
    await page.waitForURL((url) => url.searchParams.get('event') === 'push')
    await page.locator('.rows .row').click()
    await page.waitForURL('**/inspect/deliveries/1?*')
    expect(await page.getByRole('region', { name: 'Payload' }).textContent()).toContain(
      '<img src=x onerror=alert(1)>',
    )
    await page.getByRole('link', { name: 'Refused' }).click()
    await page.locator('.row-refused').click()
    await page.getByRole('heading', { level: 1, name: 'Refused: invalid signature' }).waitFor()
    await page.getByRole('link', { name: 'State' }).click()
    await page.locator('.card').nth(2).waitFor()
    await context.close()
  })

  it('never makes markup of a payload, a header or an answer, and shows what would be invisible', async () => {
    for (const path of ['/inspect/deliveries/1', '/inspect/deliveries/2', '/inspect/refused/1']) {
      await using tab = await open({ path, reducedMotion: 'reduce' })
      await tab.page.getByText('onerror=alert(1)').first().waitFor({ state: 'attached' })
      expect(await tab.page.locator('main img, main script').count()).toBe(0)
      expect(await tab.page.locator('.hidden-char').first().textContent()).toBe(String.raw`\u{202e}`)
      expect(tab.faults).toEqual([])
    }
  })

  it('loads less than 200 KB for the list, nothing from elsewhere, and the editor when it is opened', async () => {
    await using tab = await open({})
    const { page } = tab
    const session = await page.context().newCDPSession(page)
    await session.send('Network.enable')
    const loaded = new Map<string, number>()
    const urls: string[] = []
    session.on('Network.responseReceived', ({ requestId, response }) => {
      urls.push(response.url)
      loaded.set(requestId, 0)
    })
    session.on('Network.loadingFinished', ({ requestId, encodedDataLength }) =>
      loaded.set(requestId, encodedDataLength),
    )
    await session.send('Network.setCacheDisabled', { cacheDisabled: true })
    await page.reload()
    await page.locator('.rows .row').first().waitFor()
    await waitUntilLive(page)
    const bytes = [...loaded.values()].reduce((sum, size) => sum + size, 0)
    expect(bytes).toBeGreaterThan(5000)
    expect(bytes).toBeLessThan(200_000)
    expect(urls.filter((url) => url.includes('editor'))).toEqual([])
    await page.locator('.rows .row').first().click()
    await page.getByRole('button', { name: 'Edit and send' }).click()
    await page.locator('.cm-content').waitFor()
    expect(urls.filter((url) => url.includes('editor'))).toHaveLength(1)
    expect(urls.filter((url) => !url.startsWith(rig.url) && !url.startsWith('data:'))).toEqual([])
    expect(tab.faults).toEqual([])
  })

  it.each([
    ['reduce', 0],
    ['no-preference', 1],
  ] as const)(
    'with prefers-reduced-motion: %s, a row that comes in has %i animations',
    async (reducedMotion, count) => {
      await using own = await openRig()
      await own.deliver()
      await using tab = await openInspector(browser, own, { reducedMotion })
      await waitUntilLive(tab.page)
      // An animation that has begun is never over, however late the test looks.
      const session = await tab.page.context().newCDPSession(tab.page)
      await session.send('Animation.enable')
      await session.send('Animation.setPlaybackRate', { playbackRate: 0 })
      await own.deliver()
      const fresh = tab.page.locator('.fresh .row')
      await fresh.waitFor()
      expect(await fresh.evaluate((row) => row.getAnimations().length)).toBe(count)
    },
  )

  it('keeps few elements for a body of 1 MiB in one line and for a payload of a million values', async () => {
    await using own = await openRig()
    await own.deliver({ body: JSON.stringify({ line: 'x'.repeat(1_048_000) }) })
    await own.deliver({ body: JSON.stringify(Array.from({ length: 90_000 }, (_, i) => i)) })
    await using tab = await openInspector(browser, own, { path: '/inspect/deliveries/1' })
    const { page } = tab
    const elements = (): Promise<number> => page.locator('*').count()
    await page.getByRole('button', { name: 'Raw' }).click()
    await page.locator('.raw-row').nth(5).waitFor()
    expect(await elements()).toBeLessThan(1500)
    await page.goto(`${own.url}/inspect/deliveries/2`)
    await page.getByRole('treeitem').nth(5).waitFor()
    await page.getByRole('tree').focus()
    await page.keyboard.press('End')
    await page.getByRole('treeitem', { name: '89999: 89999' }).waitFor()
    expect(await elements()).toBeLessThan(1500)
    expect(tab.faults).toEqual([])
  })
})

function issue(repo: string): object {
  return {
    action: 'opened',
    issue: { number: 7, title: NASTY, labels: [{ name: 'one' }, { name: 'two' }] },
    repository: { full_name: repo },
    long: 'word '.repeat(200),
    unbroken: 'x'.repeat(3000),
  }
}

/** What axe-core finds: each rule with the elements that break it. */
async function violations(page: Page): Promise<readonly string[]> {
  // Through the debugger, as the page's policy allows no script of a test.
  await page.evaluate(AXE)
  return page.evaluate<readonly string[]>(FIND_VIOLATIONS)
}
