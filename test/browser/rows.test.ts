import type { Locator } from 'playwright-core'
import { expect, it } from 'vitest'
import { inspector, openDesk, openInspector, overlaps, violations } from '../kit/browser.js'
import { post } from '../kit/delivery.js'
import { fill } from '../kit/journal.js'
import { describeWith } from '../kit/needs.js'
import { place } from '../kit/place.js'

describeWith('chromium', 'the rows of the inspector', () => {
  it('steps to the neighbour of a delivery that the list does not have, and moves the row of the open one into view', async () => {
    await using here = await place({ host: 'none' })
    const receivedAt = Date.now()
    await fill(
      here,
      Array.from({ length: 70 }, (_, i) => ({ id: `id-${i}`, receivedAt, event: i === 0 ? 'star' : 'push' })),
    )
    const relay = await here.serve()
    await using tab = await openInspector(here, relay)
    const { page } = tab
    // Not among the rows that are loaded, and not among those that its filter lets through.
    for (const path of ['8', '8?event=star']) {
      await page.goto(`${relay.address}/inspect/deliveries/${path}`)
      await inspector.rows(page).first().waitFor()
      for (const [key, n] of [
        ['j', 7],
        ['k', 8],
      ] as const) {
        // Nothing until it is read what the neighbour is.
        const step = async (): Promise<unknown> => {
          await page.keyboard.press(key)
          return page.evaluate('location.pathname')
        }
        await expect.poll(step).toBe(`/inspect/deliveries/${n}`)
      }
    }
    await page.goto(`${relay.address}/inspect/deliveries/40`)
    await expect.poll(() => isInView(inspector.row(page, 40))).toBe(true)
    for (const n of [39, 38]) {
      await page.getByRole('link', { name: 'Older delivery' }).click()
      await inspector.number(page, n).waitFor()
      await expect.poll(() => isInView(inspector.row(page, n))).toBe(true)
    }
    expect(await inspector.focusedRow(page, 38).count()).toBe(0)
    await page.keyboard.press('j')
    await inspector.focusedRow(page, 37).waitFor()
    expect(tab.faults).toEqual([])
  })

  it('shows no row while a filter is refused, and why it is', async () => {
    await using tab = await openDesk({ bodies: ['{}', '{}'] })
    const { page } = tab
    await inspector.row(page, 1).waitFor()
    await page.getByLabel('Repository').fill('octo')
    await page.getByText('repository: must be owner/name').waitFor()
    expect(await inspector.rows(page).count()).toBe(0)
    expect(await page.getByText('could not be read').count()).toBe(0)
    await page.getByLabel('Repository').fill('')
    await inspector.row(page, 1).waitFor()
  })

  it('says where its page begins and ends, leads back to the newest, and keeps an end when another filter is chosen', async () => {
    await using tab = await openDesk({ bodies: ['{}', '{}', '{}'], path: '/inspect/?before=2' })
    const { page, relay } = tab
    await page.getByText('Older than #2.').waitFor()
    expect(await inspector.rows(page).count()).toBe(1)
    expect(await violations(page)).toEqual([])
    await page.getByRole('link', { name: 'Show the newest' }).click()
    await inspector.topRow(page, 3).waitFor()
    expect(await page.getByText('Older than').count()).toBe(0)
    await page.goto(`${relay.address}/inspect/?before=1`)
    await page.getByText('No older delivery').waitFor()

    const time = page.getByRole('combobox', { name: 'Time' })
    const chosen = (): Promise<string> => time.locator('option:checked').innerText()
    const until = '2026-01-31T12:00'
    for (const [search, text] of [
      [`until=${until}`, /^until .*31 Jan/],
      [`since=1h&until=${until}`, /^last hour until .*31 Jan/],
    ] as const) {
      await page.goto(`${relay.address}/inspect/?${search}`)
      expect(await chosen()).toMatch(text)
      await page.getByRole('combobox', { name: 'Status' }).selectOption('failed attempts')
      const address = new URLSearchParams(`status=failed&${search}`)
      await page.waitForURL(`${relay.address}/inspect/?${address.toString()}`)
      expect(await chosen()).toMatch(text)
    }
    await time.selectOption('last hour')
    await page.waitForURL('**/inspect/?status=failed&since=1h')
    expect(tab.faults).toEqual([])
  })

  it('says why a key does nothing where it cannot work', async () => {
    await using tab = await openDesk({ flags: ['--source', 'open=none'], bodies: ['{}'] })
    const { page, relay } = tab
    await inspector.row(page, 1).waitFor()
    const says = async (key: string, reason: string): Promise<void> => {
      await page.keyboard.press(key)
      await page.getByRole('status').getByText(reason).waitFor()
    }
    await says('r', 'No delivery is open.')
    await post(`${relay.address}/webhook/open`, { headers: [], body: Buffer.from('plain') })
    await page.goto(`${relay.address}/inspect/deliveries/2`)
    await page.getByRole('button', { name: 'Edit and send' }).waitFor()
    await says('e', 'Only a JSON payload can be edited.')
    await page.setViewportSize({ width: 360, height: 740 })
    await says('/', 'The search is above the list of deliveries.')
    await page.evaluate('sessionStorage.clear()')
    await page.reload()
    await page.getByRole('button', { name: 'Forward again' }).waitFor()
    await says('r', 'Without a key for changes.')
    expect(tab.faults).toEqual([])
  })

  it('shows targets that failed, are down or wait before others, counts those it has no room for, and lets nothing overlap at any width', async () => {
    await using here = await place({ host: 'none' })
    const again = { attempts: [{ outcome: 'retry', status: 503 }, {}] } as const
    const failed = { status: 'failed', attempts: [{ outcome: 'failed', status: 422 }] } as const
    const ports = [3001, 3002, 3003, 3004, 3005, 3006]
    const forwards = ports.map((port, i) => {
      const forward = i === 4 ? failed : i === 5 ? {} : again
      return [`*=http://127.0.0.1:${port}/hook`, forward] as const
    })
    const repo = 'octo/\u05e9\u05dc\u05d5\u05dd'
    await fill(here, [
      { id: 'six', receivedAt: Date.now(), repo, forwards: Object.fromEntries(forwards) },
      { id: 'three', receivedAt: Date.now(), repo, forwards: Object.fromEntries(forwards.slice(0, 3)) },
    ])
    await using tab = await openInspector(here, await here.serve())
    const { page } = tab
    await inspector.row(page, 1).waitFor()
    for (const width of [360, 768, 1024, 1440, 2560]) {
      await page.setViewportSize({ width, height: 900 })
      const shown = width === 360 ? ['3005', '3006'] : ['3005', '3006', '3001']
      const marks = inspector.row(page, 1).getByTitle(/^127.0.0.1:/)
      await expect.poll(() => marks.count()).toBe(shown.length + 1)
      const titles = await marks.evaluateAll((all) => all.map(({ title }) => title))
      const hidden = ports.filter((port) => !shown.includes(String(port)))
      expect(titles.map((title) => title.slice(0, 14))).toEqual(
        [...shown, hidden[0]].map((port) => `127.0.0.1:${port}`),
      )
      expect(titles.at(-1)).toBe(hidden.map((port) => `127.0.0.1:${port}: succeeded`).join('\n'))
      expect({ width, found: await overlaps(page) }).toEqual({ width, found: [] })
    }
    await page.getByTitle('127.0.0.1:3005: failed').click()
    await page.getByRole('heading', { level: 1, name: 'push' }).waitFor()
    // Written from right to left, it would take the number after it to its other side.
    const subject = page.getByRole('article').getByText('#7', { exact: true })
    const name = page.getByRole('article').getByText(repo, { exact: true })
    const [before, after] = [await name.boundingBox(), await subject.boundingBox()]
    expect(Number(before?.x) + Number(before?.width)).toBeLessThanOrEqual(Number(after?.x))
  })

  it('cuts the long name of a target, and not the short one before it', async () => {
    await using here = await place({ host: 'none' })
    const failed = { status: 'failed', attempts: [{ outcome: 'failed', status: 422 }] } as const
    const names = ['api', 'web', 'the-shop-of-the-whole-family']
    const forwards = names.map((name) => [`*=http://127.0.0.1:3001/${name}`, failed])
    await fill(here, [{ id: 'three', receivedAt: Date.now(), forwards: Object.fromEntries(forwards) }])
    const flags = names.flatMap((name) => ['--forward', `${name}=http://127.0.0.1:3001/${name}`])
    await using tab = await openInspector(here, await here.serve(...flags))
    const { page } = tab
    const isCut = (name: string): Promise<boolean> =>
      inspector
        .row(page, 1)
        .getByText(name, { exact: true })
        .evaluate((shown: Sized) => shown.scrollWidth > shown.clientWidth)
    expect(await Promise.all(names.map((name) => isCut(name)))).toEqual([false, false, true])
  })
})

interface Sized {
  readonly clientWidth: number
  readonly scrollWidth: number
}

/** Whether a row is wholly within the window. */
async function isInView(row: Locator): Promise<boolean> {
  const box = await row.boundingBox()
  return box !== null && box.y >= 0 && box.y + box.height <= 900
}
