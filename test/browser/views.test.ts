import { afterAll, beforeAll, expect, it } from 'vitest'
import {
  inspector,
  newPage,
  openDesk,
  openInspector,
  overflow,
  type Tab,
  toEndOfPayload,
  violations,
  waitUntilLive,
} from '../kit/browser.js'
import { Closing } from '../kit/closing.js'
import { post } from '../kit/delivery.js'
import { describeWith } from '../kit/needs.js'
import { type Place, place, type Serving } from '../kit/place.js'
import { receiver } from '../kit/receiver.js'

/** Text that would act if it became markup, hide itself, or change how what is around it looks. */
const NASTY = '<img src=x onerror=alert(1)><script>alert(2)</script>"\'&amp;\u202e\u0007'

/** Every view, by its address and what is there once it is shown. */
const VIEWS = [
  { name: 'the list', path: '/inspect/', shown: inspector.rows },
  { name: 'a list that nothing matches', path: '/inspect/?event=no_such', shown: inspector.nothing },
  { name: 'a delivery', path: '/inspect/deliveries/3', shown: inspector.payload },
  { name: 'a delivery that is not there', path: '/inspect/deliveries/999', shown: inspector.notFound },
  { name: 'two deliveries compared', path: '/inspect/deliveries/3/compare/1', shown: inspector.changes },
  { name: 'the refused requests', path: '/inspect/refused', shown: inspector.refused },
  { name: 'a refused request', path: '/inspect/refused/1', shown: inspector.reasons },
  { name: 'an address that is not there', path: '/inspect/nothing', shown: inspector.nothing },
  { name: 'the page that asks for a code', path: '/inspect/open', shown: inspector.gate },
  { name: 'the state', path: '/inspect/state', shown: inspector.cards },
] as const

const DESKTOP = { width: 1440, height: 900 }
const WIDTHS = [360, 768, 1024, DESKTOP.width]
/** The rules that other colours can break. */
const COLOURS = ['color-contrast', 'link-in-text-block']
const MEDIA = [
  { media: { colorScheme: 'light' }, rules: undefined },
  { media: { colorScheme: 'dark' }, rules: COLOURS },
  { media: { forcedColors: 'active' }, rules: COLOURS },
] as const
const SIZES = [
  { width: 360, height: 740 },
  { width: 800, height: 600 },
  DESKTOP,
  { width: 2560, height: 1300 },
  // 1440 px at a zoom of 200 %, which makes the page's own pixels larger, and so fewer.
  { width: 720, height: 450 },
]

describeWith('chromium', 'the views of the inspector', () => {
  const closing = new Closing()
  let here: Place
  let relay: Serving
  /** One visit to all views, by its address line. */
  let tab: Tab
  beforeAll(async () => {
    here = closing.use(await place({ host: 'none' }))
    const target = closing.use(
      await receiver(({ path }) => (path === '/broken' ? { status: 422, body: NASTY } : 200)),
    )
    const forward = [`*=${target.url}/works`, `issues.*=${target.url}/broken`, 'push=http://127.0.0.1:9/down']
    const sources = ['--source', 'open=none']
    relay = await here.serve(
      ...forward.flatMap((route) => ['--forward', route]),
      '--ignore',
      'star',
      ...sources,
    )
    await relay.deliver({ event: 'push', body: JSON.stringify({ ref: 'refs/heads/main', text: NASTY }) })
    await relay.deliver({ event: 'issues', body: JSON.stringify(issue('octo/demo')) })
    await relay.deliver({ event: 'issues', body: JSON.stringify(issue(`octo/${'long-name-'.repeat(9)}`)) })
    await relay.deliver({ body: NASTY, set: { 'X-Hub-Signature-256': `sha256=${'0'.repeat(64)}` } })
    await relay.deliver({ set: { 'X-Hub-Signature-256': 'sha256=0' } })
    const headers = [['Content-Type', 'application/json']] as const
    await post(`${relay.address}/webhook/open`, { headers, body: Buffer.from('{}') })
    tab = closing.use(await openInspector(here, relay, { reducedMotion: 'reduce' }))
  })
  afterAll(() => closing[Symbol.asyncDispose]())

  /** What went wrong since the last call. */
  let seen = 0
  const faults = (): readonly string[] => tab.faults.slice(seen, (seen = tab.faults.length))

  const breaksNoRule = async (widths: readonly number[]): Promise<void> => {
    for (const width of widths)
      for (const { media, rules } of MEDIA) {
        await tab.page.setViewportSize({ ...DESKTOP, width })
        await tab.page.emulateMedia({ colorScheme: 'light', forcedColors: 'none', ...media })
        const found = await violations(tab.page, rules)
        expect({ width, media, found }).toEqual({ width, media, found: [] })
      }
  }

  it.each(VIEWS)(
    '$name: breaks no rule of axe-core, light, dark and in forced colours; cuts nothing off, and scrolls only code sideways, at any width',
    async ({ path, shown }) => {
      const { page } = tab
      await page.goto(relay.address + path)
      await shown(page).first().waitFor()
      await breaksNoRule(WIDTHS)
      for (const size of SIZES) {
        await page.setViewportSize(size)
        expect({ size, found: await overflow(page) }).toEqual({ size, found: [] })
      }
      await page.setViewportSize(DESKTOP)
      expect(faults().filter((fault) => !fault.includes('404'))).toEqual([])
    },
  )

  it.each([
    ['?', 'Keys'],
    ['r', 'Forward #3 again'],
    ['e', 'Edit #3 and send'],
    ['t', 'Trigger a delivery'],
  ])('the dialog of the key %s breaks no rule of axe-core, wide and narrow', async (key, title) => {
    const { page } = tab
    await page.goto(`${relay.address}/inspect/deliveries/3`)
    await inspector.payload(page).first().waitFor()
    await page.keyboard.press(key)
    await page.getByRole('dialog', { name: title }).waitFor()
    if (key === 'e') await inspector.editor(page).waitFor()
    await breaksNoRule([360, DESKTOP.width])
    expect(faults()).toEqual([])
  })

  it.each(['Add a route', 'Add a source', 'Add a hook'])(
    'the dialog “%s” breaks no rule of axe-core, wide and narrow',
    async (title) => {
      const { page } = tab
      await page.goto(`${relay.address}/inspect/state`)
      await page.getByRole('button', { name: `${title}…` }).click()
      await page.getByRole('dialog', { name: title }).waitFor()
      await inspector.firstOfDialog(page).waitFor()
      await breaksNoRule([360, DESKTOP.width])
      expect(faults()).toEqual([])
    },
  )

  it('never makes markup of a payload, a header or an answer, and shows what would be invisible', async () => {
    const { page } = tab
    for (const path of ['/inspect/deliveries/1', '/inspect/deliveries/2', '/inspect/refused/1']) {
      await page.goto(relay.address + path)
      await page.getByText('onerror=alert(1)').first().waitFor({ state: 'attached' })
      expect(await inspector.foreignMarkup(page).count()).toBe(0)
      expect(await inspector.hiddenCharacters(page).first().textContent()).toBe(String.raw`\u{202e}`)
      expect(faults()).toEqual([])
    }
  })

  it('calls a signature that is malformed what it is', async () => {
    const { page } = tab
    await page.goto(`${relay.address}/inspect/refused/2`)
    await page.getByRole('heading', { name: 'Refused: no well-formed signature' }).waitFor()
    expect(faults()).toEqual([])
  })

  it('loads less than 200 KB for the list, nothing from elsewhere, and the editor when it is opened', async () => {
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
    await page.goto(`${relay.address}/inspect/`)
    await inspector.rows(page).first().waitFor()
    await waitUntilLive(page)
    const bytes = [...loaded.values()].reduce((sum, size) => sum + size, 0)
    expect(bytes).toBeGreaterThan(5000)
    expect(bytes).toBeLessThan(200_000)
    const scripts = (): readonly string[] => urls.filter((url) => url.endsWith('.js'))
    const ofList = scripts()
    await inspector.rows(page).first().click()
    await page.getByRole('button', { name: 'Edit and send' }).click()
    await inspector.editor(page).waitFor()
    expect(scripts().length).toBeGreaterThan(ofList.length)
    expect(urls.filter((url) => !url.startsWith(relay.address) && !url.startsWith('data:'))).toEqual([])
    expect(faults()).toEqual([])
    await session.detach()
  })
})

describeWith('chromium', 'the search for broken rules', () => {
  it('finds each, all of them or those that are asked for, as often as it is repeated', async () => {
    await using tab = await newPage()
    await tab.page.setContent('<p style="color:#ccc;background:#fff">pale</p><img src="data:,">')
    for (let i = 0; i < 2; i++) {
      const [all, colours] = [await violations(tab.page), await violations(tab.page, COLOURS)]
      expect(all).toEqual(
        expect.arrayContaining([
          expect.stringMatching(/^color-contrast: <p/),
          expect.stringMatching(/^image-alt: <img/),
        ]),
      )
      expect(colours).toEqual([expect.stringMatching(/^color-contrast: <p/)])
    }
  })
})

describeWith('chromium', 'the inspector', () => {
  it('says where the browser does not let it copy', async () => {
    await using here = await place({ host: 'none' })
    const relay = await here.serve('--inspect-host', 'relay.test')
    await relay.deliver()
    // The browser looks up no name where it has a proxy; relay answers as one.
    const proxy = { server: relay.address }
    const elsewhere = { address: 'http://relay.test' }
    const path = '/inspect/deliveries/1'
    await using tab = await openInspector(here, elsewhere, { path, proxy })
    await tab.page.getByRole('button', { name: 'Copy as curl' }).click()
    const shown = tab.page.getByText('Could not copy the curl command')
    expect(await shown.textContent()).toContain(': the browser allows it on https and localhost only')
  })

  it('says how to send a first delivery while there is none', async () => {
    await using tab = await openDesk()
    await tab.page.getByText('No deliveries yet').waitFor()
    expect(await violations(tab.page)).toEqual([])
    await tab.relay.deliver()
    await inspector.rows(tab.page).waitFor()
    expect(await tab.page.getByText('No deliveries yet').count()).toBe(0)
    expect(tab.faults).toEqual([])
  })

  it('keeps few elements for a body of 1 MiB in one line and for a payload of a million values', async () => {
    const payloads = [{ line: 'x'.repeat(1_048_000) }, Array.from({ length: 90_000 }, (_, i) => i)]
    const bodies = payloads.map((payload) => JSON.stringify(payload))
    await using tab = await openDesk({ bodies, path: '/inspect/deliveries/1' })
    const { page, relay } = tab
    const elements = (): Promise<number> => page.locator('*').count()
    await page.getByRole('button', { name: 'Raw' }).click()
    await inspector.raw(page).nth(1).waitFor()
    expect(await elements()).toBeLessThan(1500)
    await page.goto(`${relay.address}/inspect/deliveries/2`)
    await inspector.payload(page).nth(5).waitFor()
    await toEndOfPayload(page)
    await inspector.value(page, '89999: 89999').waitFor()
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
