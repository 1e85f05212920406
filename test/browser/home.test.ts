import { expect, it } from 'vitest'
import { newPage } from '../kit/browser.js'
import { describeWith } from '../kit/needs.js'
import { place } from '../kit/place.js'

describeWith('chromium', 'GET / in a browser', () => {
  it.each(['light', 'dark'] as const)(
    'fits a narrow window and keeps its colours, %s',
    async (colorScheme) => {
      await using here = await place({ host: 'none' })
      const relay = await here.serve()
      await using tab = await newPage({ viewport: { width: 360, height: 640 }, colorScheme })
      const { page, faults } = tab
      await page.goto(`${relay.address}/?auth=success&userId=ada`)
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(360)
      const sign = await page.evaluate<string>(
        'getComputedStyle(document.querySelector(".sign")).backgroundColor',
      )
      expect(sign).toBe(colorScheme === 'light' ? 'rgb(31, 136, 61)' : 'rgb(35, 134, 54)')
      expect(faults.filter((fault) => !fault.includes('favicon'))).toEqual([])
    },
  )
})
