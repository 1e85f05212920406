import { expect, it } from 'vitest'
import {
  hold,
  inspector,
  newPage,
  openDesk,
  openInspector,
  scrollList,
  setHidden,
  waitUntilLive,
} from '../kit/browser.js'
import { post } from '../kit/delivery.js'
import { fill } from '../kit/journal.js'
import { describeWith } from '../kit/needs.js'
import { place } from '../kit/place.js'
import { receiver } from '../kit/receiver.js'

const MINUTE_MS = 60_000

describeWith('chromium', 'the list of the inspector', () => {
  it('says how many deliveries came in the last hour', async () => {
    await using here = await place({ host: 'none' })
    const minutesAgo = [70, 50, 30, 10]
    const times = minutesAgo.map((minutes) => Date.now() - minutes * MINUTE_MS)
    await fill(
      here,
      times.map((receivedAt) => ({ id: String(receivedAt), receivedAt })),
    )
    await using tab = await openInspector(here, await here.serve())
    await tab.page.getByText('Last hour: 3 received, 0 failed').waitFor()
    expect(tab.faults).toEqual([])
  })

  it('keeps its place while deliveries arrive above it, counts them, and shows them when asked', async () => {
    await using tab = await openDesk({ bodies: Array.from({ length: 90 }, () => '{}') })
    const { page, relay } = tab
    await inspector.row(page, 90).waitFor()
    await waitUntilLive(page)
    await inspector.row(page, 85).hover()
    await scrollList(page, 1500)
    await inspector.row(page, 90).waitFor({ state: 'detached' })
    await inspector.row(page, 60).waitFor()
    const at = await inspector.row(page, 60).boundingBox()
    for (let i = 0; i < 3; i++) await relay.deliver()
    const pill = page.getByRole('button', { name: '3 new' })
    await pill.waitFor()
    expect(await inspector.row(page, 60).boundingBox()).toEqual(at)
    expect(await inspector.row(page, 93).count()).toBe(0)
    await pill.click()
    await inspector.topRow(page, 93).waitFor()
    await pill.waitFor({ state: 'detached' })
    await page.locator('a:focus').waitFor()
    expect(tab.faults).toEqual([])
  })

  it('filters by what is chosen, says so in its address, and takes in what comes and matches', async () => {
    await using target = await receiver(({ path }) => (path === '/fails' ? 422 : 200))
    const flags = ['--forward', `push=${target.url}/fails`, '--forward', `star=${target.url}/works`]
    await using tab = await openDesk({ flags, bodies: ['{}'] })
    const { page, relay } = tab
    await waitUntilLive(page)
    await relay.deliver({ event: 'star' })
    await inspector.row(page, 2).waitFor()
    await page.getByRole('combobox', { name: 'Status' }).selectOption('failed')
    await page.waitForURL('**/inspect/?status=failed')
    await page.getByRole('combobox', { name: 'Time' }).selectOption('last hour')
    await page.waitForURL('**/inspect/?status=failed&since=1h')
    await inspector.row(page, 2).waitFor({ state: 'detached' })
    await relay.deliver({ event: 'star' })
    await relay.deliver()
    await inspector.topRow(page, 4).waitFor()
    expect(await inspector.rows(page).count()).toBe(2)
    await page.getByRole('link', { name: 'Clear' }).click()
    await inspector.row(page, 3).waitFor()
    expect(tab.faults).toEqual([])
  })

  it('filters by source wherever relay has one, also where the filters of its address find no delivery', async () => {
    await using tab = await openDesk({ flags: ['--source', 'open=none'], bodies: ['{}'] })
    const { page, relay } = tab
    await page.goto(`${relay.address}/inspect/?event=none`)
    await page.getByText('No delivery matches').waitFor()
    await page.getByRole('link', { name: 'Clear' }).click()
    await inspector.row(page, 1).waitFor()
    await page.getByLabel('Source').fill('open')
    await page.getByText('No delivery matches').waitFor()
    await post(`${relay.address}/webhook/open`, { headers: [], body: Buffer.from('{}') })
    await inspector.row(page, 2).waitFor()
    expect(await inspector.row(page, 1).count()).toBe(0)
    expect(tab.faults).toEqual([])
  })

  it('continues a search that stopped at its limit of time when asked, and counts what it read', async () => {
    await using tab = await openDesk({ bodies: ['{"zen":"one"}', '{}', '{"zen":"one"}'] })
    const { page, relay } = tab
    const asked: (string | null)[] = []
    await page.route('**/inspect/api/deliveries?text=one&*', async (route) => {
      const before = new URL(route.request().url()).searchParams.get('before')
      asked.push(before)
      if (before === '2') return route.continue()
      const found = await route.fetch()
      const { deliveries } = await found.json()
      const stopped = { read: 64, before: before === null ? 3 : 2 }
      const first = deliveries.filter(({ n }: { readonly n: number }) => n >= 3)
      await route.fulfill({ json: { deliveries: before === null ? first : [], next: null, stopped } })
    })
    await page.goto(`${relay.address}/inspect/?text=one`)
    await inspector.row(page, 3).waitFor()
    const again = page.getByRole('button', { name: 'Search older ones' })
    for (const read of [64, 128]) {
      await page.getByText(`Searched ${read} deliveries.`).waitFor()
      expect(await inspector.rows(page).count()).toBe(1)
      await again.click()
    }
    await inspector.row(page, 1).waitFor()
    await again.waitFor({ state: 'detached' })
    expect(asked.filter((before) => before !== null)).toEqual(['3', '2'])
    // The first page is read again, and what was found after it stays.
    await waitUntilLive(page)
    await relay.deliver({ body: '{"zen":"one"}' })
    await inspector.topRow(page, 4).waitFor()
    expect(await inspector.rows(page).count()).toBe(3)
  })

  it('continues a search also if it was asked to while the first page was read again', async () => {
    await using tab = await openDesk({ bodies: ['{"zen":"one"}', '{"zen":"one"}'] })
    const { page, relay } = tab
    let release = (): void => {}
    let released = Promise.resolve()
    await page.route('**/inspect/api/deliveries?text=one&limit=50', async (route) => {
      await released
      const found = await (await route.fetch()).json()
      const deliveries = found.deliveries.filter(({ n }: { readonly n: number }) => n >= 2)
      await route.fulfill({ json: { deliveries, next: null, stopped: { read: 64, before: 2 } } })
    })
    await page.goto(`${relay.address}/inspect/?text=one`)
    await inspector.row(page, 2).waitFor()
    await waitUntilLive(page)
    released = new Promise((resolve) => (release = resolve))
    const again = page.waitForRequest('**/inspect/api/deliveries?text=one&limit=50')
    await relay.deliver({ body: '{"zen":"one"}' })
    await again
    await page.getByRole('button', { name: 'Search older ones' }).click()
    release()
    await inspector.row(page, 1).waitFor()
    expect(await inspector.rows(page).count()).toBe(3)
  })

  it('takes no new delivery into a page that begins further back', async () => {
    await using tab = await openDesk({ bodies: ['{}', '{}', '{}'], path: '/inspect/?before=3' })
    const { page, relay } = tab
    await inspector.row(page, 2).waitFor()
    await waitUntilLive(page)
    await relay.deliver()
    await page.getByText('Last hour: 4 received').waitFor()
    await inspector.topRow(page, 2).waitFor()
    expect(await inspector.rows(page).count()).toBe(2)
    expect(await page.getByRole('button', { name: 'new' }).count()).toBe(0)
  })

  it('loads what follows when its end came into view while it was read again', async () => {
    await using tab = await openDesk({ bodies: Array.from({ length: 90 }, () => '{}') })
    const { page } = tab
    await inspector.row(page, 90).hover()
    const { held, release } = await hold(page, '**/inspect/api/deliveries?limit=50')
    // Says that its connection is back, on which the list is read again.
    await setHidden(page, true)
    await setHidden(page, false)
    await held
    await scrollList(page, 100_000)
    await inspector.row(page, 41).waitFor()
    const more = page.waitForRequest('**/inspect/api/deliveries?before=41&limit=200')
    release()
    expect((await (await more).response())?.status()).toBe(200)
  })

  it('ends after 20,000 rows, more of which no browser would draw, and continues on a page of its own', async () => {
    await using tab = await openDesk({ bodies: ['{}'] })
    const { page } = tab
    const { deliveries } = await (
      await page.request.get(`${tab.relay.address}/inspect/api/deliveries`)
    ).json()
    const newest = 1_000_000
    await page.route('**/inspect/api/deliveries?*', async (route) => {
      const { searchParams } = new URL(route.request().url())
      const before = Number(searchParams.get('before') ?? newest + 1)
      // More than are asked for, so that the end is near.
      const limit = 4000
      const page = Array.from({ length: limit }, (_, i) => ({ ...deliveries[0], n: before - 1 - i }))
      await route.fulfill({ json: { deliveries: page, next: before - limit } })
    })
    await page.reload()
    await inspector.row(page, newest).hover()
    const more = page.getByRole('link', { name: 'Continue before' })
    while ((await more.count()) === 0) {
      await scrollList(page, 10_000_000)
      await page.evaluate('new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)))')
    }
    expect(await more.getAttribute('href')).toMatch(/\?before=980001$/)
    expect(await inspector.rows(page).count()).toBeLessThan(100)
  })

  it('leaves keys with a modifier to the browser, and all keys to an open dialog', async () => {
    await using tab = await openDesk({ bodies: ['{}'], path: '/inspect/deliveries/1' })
    const { page } = tab
    await inspector.payload(page).first().waitFor()
    const dialogs = page.getByRole('dialog')
    for (const modifier of ['Control', 'Alt', 'Meta']) await page.keyboard.press(`${modifier}+e`)
    expect(await dialogs.count()).toBe(0)
    await page.keyboard.press('?')
    await page.getByRole('dialog', { name: 'Keys' }).waitFor()
    await page.keyboard.press('e')
    expect(await dialogs.allTextContents()).toEqual([expect.stringContaining('Everywhere')])
    expect(tab.faults).toEqual([])
  })

  it('keeps showing a delivery that retention removes meanwhile, and says so', async () => {
    await using here = await place({ host: 'none' })
    let later = 0
    const seams = { clock: () => Date.now() + later, limits: { sweep: 100 } }
    const relay = await here.serveWith({ seams }, '--keep', '40s')
    for (const zen of ['one', 'two']) await relay.deliver({ body: JSON.stringify({ zen }) })
    await using tab = await openInspector(here, relay, { path: '/inspect/deliveries/1' })
    const { page } = tab
    await inspector.value(page, 'zen: "one"').waitFor()
    await inspector.row(page, 1).waitFor()
    await waitUntilLive(page)
    // The last one stays. A longer jump of the clock would not count at once.
    later = 45_000
    await page.getByText('Retention removed #1 from the journal.').waitFor()
    await inspector.row(page, 1).waitFor({ state: 'detached' })
    expect(await inspector.value(page, 'zen: "one"').count()).toBe(1)
    expect(await inspector.row(page, 2).count()).toBe(1)
    expect(tab.faults.filter((fault) => !fault.includes('404'))).toEqual([])
  })

  it('leaves the focus in a field in which the user types while a delivery loads', async () => {
    await using tab = await openDesk({ bodies: ['{"zen":"one"}'] })
    const { page } = tab
    const { release } = await hold(page, '**/api/deliveries/1')
    const asked = page.waitForRequest('**/api/deliveries/1')
    await inspector.row(page, 1).click()
    await asked
    await page.keyboard.press('/')
    await page.keyboard.type('ze')
    release()
    await inspector.value(page, 'zen: "one"').waitFor()
    await page.keyboard.type('n')
    await page.waitForURL('**/deliveries/1?text=zen')
    expect(tab.faults).toEqual([])
  })

  it('leaves the focus in the search field when the row that it left for the field comes into the list', async () => {
    const bodies = ['{"zen":"one"}', '{"zen":"two"}']
    await using tab = await openDesk({ bodies, path: '/inspect/deliveries/1?text=two' })
    const { page } = tab
    await inspector.value(page, 'zen: "one"').waitFor()
    await inspector.row(page, 2).waitFor()
    // To the list, in which its row is not.
    await page.keyboard.press('Escape')
    await page.waitForURL('**/inspect/?text=two')
    await page.keyboard.press('/')
    await page.keyboard.type('one')
    await inspector.row(page, 1).waitFor()
    await page.keyboard.type('s')
    await page.waitForURL('**/inspect/?text=ones')
    expect(tab.faults).toEqual([])
  })

  it('leaves the focus in a field of an edit while the editor loads', async () => {
    await using tab = await openDesk({ bodies: ['{"zen":"one"}'] })
    const { page, relay } = tab
    const { release } = await hold(page, '**/deliveries/1/body')
    await page.goto(`${relay.address}/inspect/deliveries/1`)
    await page.getByRole('button', { name: 'Edit and send' }).click()
    const event = page.getByRole('dialog').getByLabel('Event')
    await event.click()
    await page.keyboard.type('_a')
    release()
    await inspector.editor(page).filter({ hasText: 'one' }).waitFor()
    await page.keyboard.type('b')
    expect(await event.inputValue()).toBe('push_ab')
    expect(tab.faults).toEqual([])
  })

  it('leaves an edit open when what was forwarded before is done', async () => {
    await using target = await receiver()
    const flags = ['--forward', `*=${target.url}`]
    await using tab = await openDesk({ flags, bodies: ['{"zen":"one"}'], path: '/inspect/deliveries/1' })
    const { page } = tab
    const { release } = await hold(page, '**/deliveries/1/forward')
    await page.getByRole('button', { name: 'Forward again' }).click()
    await inspector.firstOfDialog(page).waitFor()
    await page.keyboard.press('Enter')
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'Edit and send' }).click()
    await inspector.focusedEditor(page).waitFor()
    release()
    await page.getByText('Forwarding #1 again').waitFor()
    expect(await page.getByRole('dialog', { name: 'Edit #1 and send' }).count()).toBe(1)
    expect(tab.faults).toEqual([])
  })

  it('says why a code in the address does not open it', async () => {
    await using here = await place({ host: 'none' })
    const relay = await here.serve()
    await using tab = await newPage()
    const { page } = tab
    await page.goto(`${relay.address}/inspect/#aaaa-bbbb-cccc-dddd/1`)
    await page.getByText('That code is wrong, was used before, or is older than 5 minutes').waitFor()
    expect(page.url()).toBe(`${relay.address}/inspect/deliveries/1`)
    await page.getByLabel('Code').waitFor()
    expect(tab.faults.filter((fault) => !fault.includes('401'))).toEqual([])
  })

  it('asks before an edit is lost', async () => {
    await using tab = await openDesk({ bodies: ['{"zen":"one"}'], path: '/inspect/deliveries/1' })
    const { page, faults } = tab
    const edit = page.getByRole('dialog', { name: 'Edit #1 and send' })
    await page.getByRole('button', { name: 'Edit and send' }).click()
    await inspector.focusedEditor(page).waitFor()
    await page.keyboard.press('Escape')
    await edit.waitFor({ state: 'detached' })
    expect(faults).toEqual([])

    await page.getByRole('button', { name: 'Edit and send' }).click()
    await inspector.focusedEditor(page).waitFor()
    await page.keyboard.insertText('changed')
    for (const close of [() => page.keyboard.press('Escape'), () => page.mouse.click(5, 5)]) {
      // The answer is no.
      const asked = page.waitForEvent('dialog')
      await close()
      await asked
      await inspector.editor(page).filter({ hasText: 'changed' }).click()
    }
    const question = 'dialog: Close without sending? Your edit is lost.'
    expect(faults).toEqual([question, question])
  })

  it('compares two deliveries: one that is offered, or any by its number', async () => {
    const payloads = [{ zen: 'one', same: 1 }, { other: true }, { zen: 'two', same: 1, added: [2] }]
    const bodies = payloads.map((payload) => JSON.stringify(payload))
    await using tab = await openDesk({ bodies, path: '/inspect/deliveries/3' })
    const { page } = tab
    await page.getByRole('button', { name: 'Compare with…' }).click()
    const dialog = page.getByRole('dialog', { name: 'Compare #3 with' })
    await dialog.getByRole('button', { name: '#1 push' }).click()
    await page.waitForURL('**/deliveries/3/compare/1')
    await inspector.changes(page, 'Headers').nth(5).waitFor()
    expect(await inspector.changes(page, 'Payload').allTextContents()).toEqual([
      '  "zen": "one",',
      '  "same": 1',
      '  "zen": "two",',
      '  "same": 1,',
      '  "added": [',
      '    2',
      '  ]',
    ])
    const headers = await inspector.changes(page, 'Headers').allTextContents()
    const changed = ['content-length', 'x-github-delivery', 'x-hub-signature-256']
    expect(headers.map((text) => text.split(':')[0])).toEqual([...changed, ...changed])
    await page.keyboard.press('Escape')
    await page.waitForURL('**/deliveries/3')

    await page.getByRole('button', { name: 'Compare with…' }).click()
    await inspector.firstOfDialog(page).waitFor()
    await page.keyboard.type('2')
    await page.keyboard.press('Enter')
    await page.waitForURL('**/deliveries/3/compare/2')
    expect(tab.faults).toEqual([])
  })

  it('can be open in more tabs than a browser has connections, and is up to date when shown', async () => {
    await using tab = await openDesk()
    const { relay } = tab
    await waitUntilLive(tab.page)
    for (let i = 0; i < 6; i++) {
      const other = await tab.page.context().newPage()
      await other.goto(`${relay.address}/inspect/`)
      await waitUntilLive(other)
      await setHidden(other, true)
    }
    await setHidden(tab.page, true)
    expect((await relay.deliver()).status).toBe(200)
    expect((await relay.deliver({ secret: 'wrong' })).status).toBe(401)
    await setHidden(tab.page, false)
    await inspector.row(tab.page, 1).waitFor()
    await tab.page.getByRole('link', { name: 'Refused 1' }).waitFor()
    await waitUntilLive(tab.page)
    expect(tab.faults).toEqual([])
  })

  it.each([
    ['reduce', 0],
    ['no-preference', 1],
  ] as const)(
    'with prefers-reduced-motion: %s, a row that comes in has %i animations',
    async (reducedMotion, count) => {
      await using tab = await openDesk({ bodies: ['{}'], reducedMotion })
      const { relay } = tab
      await waitUntilLive(tab.page)
      // An animation that has begun is never over, however late the test looks.
      const session = await tab.page.context().newCDPSession(tab.page)
      await session.send('Animation.enable')
      await session.send('Animation.setPlaybackRate', { playbackRate: 0 })
      await relay.deliver()
      const fresh = inspector.freshRow(tab.page)
      await fresh.waitFor()
      expect(await fresh.evaluate((row) => row.getAnimations().length)).toBe(count)
    },
    60_000,
  )
})
