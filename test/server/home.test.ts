import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { launchBrowser } from '../helpers/browser.js'
import { describeWith } from '../helpers/needs.js'
import { startRelay } from './auth-rig.js'

const RUNNING = ['relay is running', 'This address receives webhooks and signs users in.']
const SIGNED_IN = [
  'You are signed in',
  'relay has stored your access token and can act for you at the code host.',
]
const failed = (text: string): string[] => ['You are not signed in', text]

/** What a query says, and the heading and first sentence of the page for it. */
const OUTCOMES: readonly (readonly [query: string, texts: readonly string[]])[] = [
  ['', RUNNING],
  ['?auth=maybe&reason=access_denied', RUNNING],
  ['?auth=success&auth=error', RUNNING],
  ['?auth=success&userId=ada', SIGNED_IN],
  [
    '?auth=error&reason=invalid_state',
    failed('This sign-in had expired, was used before, or began in another browser.'),
  ],
  ['?auth=error&reason=access_denied', failed('The code host reports that access was not granted.')],
  [
    '?auth=error&reason=provider_unavailable',
    failed('The code host could not be reached, or did not answer as it should.'),
  ],
  ['?auth=error&reason=exchange_failed', failed('The code host did not give relay an access token.')],
  ['?auth=error&reason=storage_failed', failed('relay could not store your access token.')],
  ['?auth=error', failed('Signing in did not succeed.')],
  [
    '?auth=error&reason=%3Cscript%3Ealert(1)%3C/script%3E&userId=mallory',
    failed('Signing in did not succeed.'),
  ],
]

describe('GET /', () => {
  it.each(OUTCOMES)('for %j is one fixed page that may run and load nothing', async (query, texts) => {
    await using relay = await startRelay()
    const { status, headers, body } = await relay.ask('GET', `/${query}`)
    expect(status).toBe(200)
    expect(headers).toMatchObject({
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': expect.stringMatching(
        /^default-src 'none'; style-src 'sha256-[^']+'; form-action 'none';/,
      ),
      'cache-control': 'no-store',
    })
    const [, heading, text] = /<h1>(.*)<\/h1>\s*<p>(.*)<\/p>/.exec(body) ?? []
    expect([heading, text]).toEqual(texts)
    expect(body).not.toMatch(/mallory|ada|alert|_state|_denied/)
  })
})

describeWith('chromium', 'GET / in a browser', () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await launchBrowser()
  })
  afterAll(async () => {
    await browser.close()
  })

  it.each(['light', 'dark'] as const)(
    'fits a narrow window and keeps its colours, %s',
    async (colorScheme) => {
      await using relay = await startRelay()
      const page = await browser.newPage({ viewport: { width: 360, height: 640 }, colorScheme })
      const problems: string[] = []
      page.on('console', (message) => problems.push(message.text()))
      await page.goto(`${relay.url}/?auth=success&userId=ada`)
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(360)
      const sign = await page.evaluate<string>(
        'getComputedStyle(document.querySelector(".sign")).backgroundColor',
      )
      expect(sign).toBe(colorScheme === 'light' ? 'rgb(31, 136, 61)' : 'rgb(35, 134, 54)')
      expect(problems.filter((problem) => !problem.includes('favicon'))).toEqual([])
      await page.close()
    },
  )
})
