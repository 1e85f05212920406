import { expect, it } from 'vitest'
import { newPage } from '../kit/browser.js'
import { describeWith } from '../kit/needs.js'
import { place } from '../kit/place.js'

const SANDBOX = ['--sandbox', '--sandbox-port', '0']

describeWith('chromium', 'a person with a browser', () => {
  it('signs in, acts from the shell, sees the comment on its page, and its webhook come back', async () => {
    await using here = await place({ host: 'none', env: { RELAY_PROFILE: 'sandbox' } })
    const relay = await here.serve(...SANDBOX)
    const { address } = relay
    const { sandbox } = await relay.listening()

    await using tab = await newPage()
    const { page } = tab
    await page.goto(`${address}/auth/sandbox?userId=ada`)
    await page.getByRole('button', { name: 'Authorize' }).click()
    await page.waitForURL(`${address}/?*`)
    expect(page.url()).toBe(`${address}/?auth=success&userId=ada`)
    expect(await page.getByRole('heading').textContent()).toBe('You are signed in')

    const { code, out: header } = await here.run('token', '--user', 'ada', '--header')
    expect(code).toBe(0)
    const [name = '', value = ''] = header.trim().split(': ')
    const answer = await fetch(`${address}/api/comment`, {
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
    expect(await relay.object({ event: 'issue_comment' })).toMatchObject({
      action: 'created',
      repo: 'octo/demo',
      number: 1,
      duplicate: false,
    })
  })

  it('sees a page when they cancel', async () => {
    await using here = await place({ host: 'none', env: { RELAY_PROFILE: 'sandbox' } })
    const { address } = await here.serve(...SANDBOX)
    await using tab = await newPage()
    const { page } = tab
    await page.goto(`${address}/auth/sandbox?userId=ada`)
    await page.getByRole('button', { name: 'Cancel' }).click()
    await page.waitForURL(`${address}/?*`)
    expect(page.url()).toBe(`${address}/?auth=error&reason=access_denied`)
  })
})
