import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { emptyFolder } from '../helpers/context.js'
import { launchBrowser } from '../helpers/browser.js'
import { describeWith } from '../helpers/needs.js'
import { Program, relay } from '../helpers/program.js'

const SANDBOX = ['serve', '--sandbox', '--port', '0', '--sandbox-port', '0', '--json']

describeWith('chromium', 'a person with a browser', () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await launchBrowser()
  })
  afterAll(async () => {
    await browser.close()
  })

  it('signs in, acts from the shell, sees the comment on its page, and its webhook come back', async () => {
    const env = { RELAY_HOME: emptyFolder(), RELAY_PROFILE: 'sandbox' }
    await using program = new Program(SANDBOX, env)
    const { url, sandbox } = await program.listening()

    const page = await browser.newPage()
    await page.goto(`${url}/auth/sandbox?userId=ada`)
    await page.getByRole('button', { name: 'Authorize' }).click()
    await page.waitForURL(`${url}/?*`)
    expect(page.url()).toBe(`${url}/?auth=success&userId=ada`)
    expect(await page.getByRole('heading').textContent()).toBe('You are signed in')

    const { code, out: header } = await relay(['token', '--user', 'ada', '--header'], env)
    expect(code).toBe(0)
    const [name = '', value = ''] = header.trim().split(': ')
    const answer = await fetch(`${url}/api/comment`, {
      method: 'POST',
      headers: { [name]: value, 'Content-Type': 'application/json' },
      body: JSON.stringify({ owner: 'octo', repo: 'demo', issueNumber: 1, body: 'Hello <b>you</b>' }),
    })
    const comment: { ok: boolean; id: number; url: string } = JSON.parse(await answer.text())
    expect(comment).toEqual({
      ok: true,
      id: expect.any(Number),
      url: expect.stringContaining(sandbox),
    })

    await page.goto(comment.url)
    expect(await page.getByText('Hello <b>you</b>').count()).toBe(1)
    expect(await program.object({ event: 'issue_comment' })).toMatchObject({
      action: 'created',
      repo: 'octo/demo',
      number: 1,
      duplicate: false,
    })
    await page.close()
  })

  it('sees a page when they cancel', async () => {
    await using program = new Program(SANDBOX)
    const url = await program.url()
    const page = await browser.newPage()
    await page.goto(`${url}/auth/sandbox?userId=ada`)
    await page.getByRole('button', { name: 'Cancel' }).click()
    await page.waitForURL(`${url}/?*`)
    expect(page.url()).toBe(`${url}/?auth=error&reason=access_denied`)
    await page.close()
  })
})
