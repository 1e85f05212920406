import { expect, it } from 'vitest'
import {
  badBreaks,
  groundOfSearch,
  inspector,
  openDesk,
  openInspector,
  styleOf,
  toEndOfPayload,
  violations,
  waitUntilLive,
} from '../kit/browser.js'
import { describeWith } from '../kit/needs.js'
import { place } from '../kit/place.js'
import { receiver, valuesOf } from '../kit/receiver.js'

describeWith('chromium', 'a delivery in the inspector', () => {
  it('says in its row which targets it went to, and how many attempts they took', async () => {
    await using here = await place({ host: 'none' })
    let failures = 0
    await using target = await receiver(() => (failures++ < 3 ? 500 : 200))
    const seams = { limits: { retries: [10, 10, 10, 10] } }
    const relay = await here.serveWith({ seams }, '--forward', `builds=*=${target.url}`)
    await using tab = await openInspector(here, relay)
    await waitUntilLive(tab.page)
    await relay.deliver()
    await target.has(4)
    const row = inspector.row(tab.page, 1)
    await row.getByText('succeeded').waitFor({ state: 'attached' })
    expect(await row.getByText('builds').count()).toBe(1)
    await expect.poll(() => inspector.tries(tab.page).allTextContents()).toEqual(['×4 4 attempts'])
    await row.click()
    const attempts = inspector.attempts(tab.page, 'builds')
    await attempts.nth(3).waitFor()
    const words = (await attempts.allTextContents()).map(
      (text) => /^Attempt \d(?:succeeded|failed)\d{3}/.exec(text)?.[0],
    )
    expect(words).toEqual([
      'Attempt 4succeeded200',
      'Attempt 3failed500',
      'Attempt 2failed500',
      'Attempt 1failed500',
    ])
    expect(tab.faults).toEqual([])
  })

  it('shows on a phone what can be done with a delivery before its payload, and an empty key as it was sent', async () => {
    await using tab = await openDesk({
      bodies: ['{"":1,"list":[]}'],
      path: '/inspect/deliveries/1',
      viewport: { width: 360, height: 740 },
    })
    await inspector.value(tab.page, ': 1').waitFor()
    const parts = async () =>
      (await inspector.parts(tab.page).allTextContents()).map((text) => text.split(' ')[0])
    const inOrder = ['Forward', 'Targets', 'Payload', 'Headers', 'Signature']
    expect(await parts()).toEqual(inOrder)
    const verdict = await tab.page.getByText('verified with the current webhook secret').first().boundingBox()
    const targets = await inspector.parts(tab.page).first().boundingBox()
    expect(verdict && targets && verdict.y < targets.y).toBe(true)
    await tab.page.setViewportSize({ width: 1440, height: 900 })
    await expect.poll(parts).toEqual(inOrder)
    expect(tab.faults).toEqual([])
  })

  it('copies the payload, the path of a value, a curl command and the fixture', async () => {
    const body = '{ "a": [1, {"b c": 2}] }'
    const permissions = ['clipboard-read', 'clipboard-write']
    await using tab = await openDesk({ bodies: [body], path: '/inspect/deliveries/1', permissions })
    const { page, relay } = tab
    const copied = async (button: string, what: string): Promise<string> => {
      await page.getByRole('button', { name: button, exact: true }).click()
      await page.getByText(`Copied ${what}`).waitFor()
      return page.evaluate<string>('navigator.clipboard.readText()')
    }
    const read = async (kind: string): Promise<string> =>
      (await page.request.get(`${relay.address}/inspect/api/deliveries/1/${kind}`)).text()
    await inspector.value(page, 'b c: 2').click()
    expect(await copied('Copy path', 'the path')).toBe('a[1]["b c"]')
    expect(await copied('Copy', 'the payload')).toBe(body)
    expect(await copied('Copy as curl', 'the curl command')).toBe(await read('curl'))
    expect(await copied('Copy fixture', 'the fixture')).toBe(await read('fixture'))
    expect(tab.faults).toEqual([])
  })

  it('wraps JSON on a phone so that no comma stands alone, in a payload and in an edit', async () => {
    // Of each length, so that some end where the window does.
    const lengths = Array.from({ length: 30 }, (_, i) => 15 + i)
    const body = JSON.stringify({
      values: lengths.map((length) => ({ v: 'x'.repeat(length), number: 1 })),
      names: lengths.map((length) => ({ ['n'.repeat(length)]: true, end: `https://example.com/${length}` })),
      words: lengths.map((length) => ['x'.repeat(length % 5) + ' word'.repeat(length / 5), length ** 9]),
      deep: { a: { b: { c: { d: { e: { f: { g: { h: 'a sentence of several words' } } } } } } } },
    })
    await using tab = await openDesk({
      bodies: [body],
      path: '/inspect/deliveries/1',
      viewport: { width: 360, height: 740 },
    })
    const { page } = tab
    await inspector.payload(page).nth(5).waitFor()
    await page.getByRole('textbox', { name: 'Payload' }).focus()
    for (let isAtEnd = false; !isAtEnd; await page.keyboard.press('PageDown')) {
      expect(await badBreaks(page)).toEqual([])
      isAtEnd = await page.getByText('a sentence of several words').isVisible()
    }
    await page.getByRole('button', { name: 'Edit and send' }).click()
    await inspector.focusedEditor(page).waitFor()
    await page.keyboard.press('End')
    await page.keyboard.insertText(`\n  "typed": "${'https://example.com/'.repeat(3)}",`)
    expect(await badBreaks(page)).toEqual([])
    expect(tab.faults).toEqual([])
  })

  it('names the line and column of an error in an edit, does not send it, and sends edited headers', async () => {
    await using target = await receiver()
    const flags = ['--forward', `*=${target.url}`]
    await using tab = await openDesk({ flags, bodies: ['{"zen":"one"}'], path: '/inspect/deliveries/1' })
    const { page } = tab
    await page.getByRole('button', { name: 'Edit and send' }).click()
    await inspector.focusedEditor(page).waitFor()
    await page.keyboard.press('Control+a')
    await page.keyboard.insertText('{\n  "zen": tru\n}')
    // The error is the line's end, which would not be seen.
    await page.getByText(/^The payload is not JSON: line 2, column 10: .*\\u\{a\}/).waitFor()
    await page.keyboard.press('Control+a')
    await page.keyboard.insertText('{} 1')
    const after = 'The payload is not JSON: line 1, column 4: Unexpected non-whitespace character after JSON'
    await page.getByText(after, { exact: true }).waitFor()
    await page.keyboard.press('Control+a')
    await page.keyboard.insertText('{\n  "zen": tru\n}')
    await page.getByText(/^The payload is not JSON: line 2/).waitFor()
    const send = page.getByRole('button', { name: 'Send', exact: true })
    expect(await send.isEnabled()).toBe(false)
    await send.click({ force: true })
    await page.keyboard.press('Control+a')
    await inspector.focusedEditor(page).or(send).first().waitFor()
    await inspector.editor(page).click()
    await page.keyboard.press('Control+a')
    await page.keyboard.insertText('{"zen": "two"}')
    await expect.poll(() => send.isEnabled()).toBe(true)

    await inspector.editedHeaders(page).locator('summary').click()
    const headers = page.getByLabel('Headers, one a line')
    const given = await headers.inputValue()
    expect(given).not.toMatch(/x-github-delivery|x-hub-signature|content-length/i)
    await headers.fill(`${given}\nX-Relay-Edited: 7`)
    await send.click()
    await page.getByText('X-Relay-Edited is made for each delivery and cannot be set.').waitFor()
    await headers.fill(`${given}\nX-Mine: by hand`)
    await send.click()
    await page.waitForURL('**/deliveries/2')
    await target.has(2)
    const [, sent] = target.received
    expect(sent?.body.toString()).toBe('{"zen": "two"}')
    expect(sent && valuesOf(sent, 'X-Mine')).toEqual(['by hand'])
    expect(tab.faults).toEqual([])
  })

  it('compares side by side, or in one column on a phone, with equal parts folded away and long values whole on demand', async () => {
    const same = Array.from({ length: 40 }, (_, i) => i)
    const bodies = ['one', 'two'].map((zen) => JSON.stringify({ same, zen, long: 'x'.repeat(20_000) }))
    await using tab = await openDesk({ bodies, path: '/inspect/deliveries/2/compare/1' })
    const { page } = tab
    await inspector.equal(page).nth(1).waitFor()
    const left = await inspector.changes(page).filter({ hasText: '"one"' }).boundingBox()
    const right = await inspector.changes(page).filter({ hasText: '"two"' }).boundingBox()
    expect(left?.y).toBe(right?.y)
    expect(await page.getByText('more characters').count()).toBe(2)
    await page.getByRole('button', { name: 'Show all' }).first().click()
    await inspector.equal(page).first().waitFor({ state: 'detached' })
    expect(await page.getByText('more characters').count()).toBe(0)

    await page.setViewportSize({ width: 360, height: 740 })
    await page.getByRole('button', { name: 'Show differences only' }).click()
    await page.getByText('unchanged lines').first().waitFor()
    const removed = await page.getByText('"one"').boundingBox()
    const added = await inspector.changes(page).filter({ hasText: '"two"' }).boundingBox()
    expect(removed && added && removed.y < added.y).toBe(true)
    expect(tab.faults).toEqual([])
  })

  it('shows in forced colours what differs, which place is open and what has the focus', async () => {
    const bodies = ['{"zen":"one"}', '{"zen":"two"}']
    const path = '/inspect/deliveries/2/compare/1'
    await using tab = await openDesk({ bodies, path, forcedColors: 'active' })
    const { page, relay } = tab
    const ground = await styleOf(inspector.changes(page).first(), 'background-color')
    for (const sign of [inspector.changedWords(page), inspector.changeSigns(page)])
      expect(await styleOf(sign.first(), 'background-color')).not.toBe(ground)
    const edges = async (name: string): Promise<readonly unknown[]> => {
      const link = page.getByRole('navigation', { name: 'Inspector' }).getByRole('link', { name })
      return Promise.all(['border-top-color', 'border-bottom-color'].map((edge) => styleOf(link, edge)))
    }
    expect(await edges('State')).toEqual([ground, ground])
    expect(await edges('Deliveries')).toEqual([ground, expect.not.stringContaining(String(ground))])

    await page.goto(`${relay.address}/inspect/deliveries/2`)
    await page.getByRole('button', { name: 'Edit and send' }).click()
    await inspector.focusedEditor(page).waitFor()
    expect(await styleOf(inspector.editorBox(page), 'outline-style')).toBe('solid')
    expect(tab.faults).toEqual([])
  })

  it('compares side by side on a phone, too, where one column would draw thousands of removed lines', async () => {
    const bodies = [Array.from({ length: 3000 }, (_, i) => i), ['two']].map((body) => JSON.stringify(body))
    const viewport = { width: 360, height: 740 }
    await using tab = await openDesk({ bodies, path: '/inspect/deliveries/2/compare/1', viewport })
    await inspector.changes(tab.page, 'Payload').filter({ hasText: '"two"' }).waitFor()
    expect(await tab.page.locator('*').count()).toBeLessThan(1500)
    expect(tab.faults).toEqual([])
  })

  it('shows a payload that cannot be edited, its invisible characters, and a search in the colours of the page', async () => {
    const hidden = ['\u202a', '\u202c', '\u2060', '\u2068', '\u200b', '\ufeff']
    await using tab = await openDesk({
      bodies: [JSON.stringify({ zen: hidden.join('') })],
      path: '/inspect/deliveries/1',
      colorScheme: 'dark',
    })
    const { page } = tab
    await inspector.hiddenCharacters(page).first().waitFor()
    const symbols = hidden.map((char) => `\\u{${char.codePointAt(0)?.toString(16)}}`)
    expect(await inspector.hiddenCharacters(page).allTextContents()).toEqual(symbols)
    // A phone would open its keyboard.
    const payload = page.getByRole('textbox', { name: 'Payload' })
    expect(await payload.getAttribute('contenteditable')).toBe('false')
    await page.getByRole('button', { name: 'Find' }).click()
    await page.getByRole('button', { name: 'Next' }).waitFor()
    // CodeMirror's own light gradients would hide the words, which axe-core does not see.
    expect(await groundOfSearch(page)).toEqual(['none', 'rgb(23, 24, 29)'])
    expect(await violations(page)).toEqual([])
    expect(tab.faults).toEqual([])
  })

  it('shows a payload of 25 MiB with few elements, to its end', async () => {
    await using here = await place({ host: 'none' })
    const relay = await here.serve('--max-body', '26214400')
    const value = 'y'.repeat(240)
    const body = JSON.stringify(Array.from({ length: 99_000 }, (_, i) => ({ i, value })))
    expect((await relay.deliver({ body })).status).toBe(200)
    await using tab = await openInspector(here, relay, { path: '/inspect/deliveries/1' })
    const { page } = tab
    await inspector.payload(page).nth(5).waitFor()
    await toEndOfPayload(page)
    const last = inspector.value(page, 'i: 98999')
    await last.waitFor()
    // A parser would not have come this far: no colours, nothing to fold.
    expect((await inspector.numbers(last).allTextContents()).join('')).toBe('98999')
    await inspector.foldMarks(page).last().click()
    await last.waitFor({ state: 'detached' })
    expect(await page.locator('*').count()).toBeLessThan(1500)
    await page.getByRole('button', { name: 'Find' }).click()
    await page.keyboard.type('"i": 4321,')
    await page.keyboard.press('Enter')
    await inspector.value(page, 'i: 4321').waitFor()
    expect(tab.faults).toEqual([])
  })
})
