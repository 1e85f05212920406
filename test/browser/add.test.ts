import { expect, it } from 'vitest'
import { openDesk } from '../kit/browser.js'
import { describeWith } from '../kit/needs.js'
import { receiver } from '../kit/receiver.js'

describeWith('chromium', 'what the state of the inspector adds', () => {
  it('is a route by keys alone, which forwards at once, and is removed there', async () => {
    await using target = await receiver()
    await using tab = await openDesk({ path: '/inspect/state' })
    const { page } = tab
    await page.getByRole('button', { name: 'Add a route…' }).focus()
    await page.keyboard.press('Enter')
    const dialog = page.getByRole('dialog', { name: 'Add a route' })
    await dialog.getByLabel('Address').waitFor()
    await page.keyboard.type('./deploy.sh')
    await page.keyboard.press('Enter')
    await dialog.getByText("Invalid route: './deploy.sh' names no http:// or https:// address").waitFor()
    await page.keyboard.press('Control+a')
    await page.keyboard.type(`${target.url}/hooks?token=hidden`)
    for (const text of ['push', 'zen==one', 'app']) {
      await page.keyboard.press('Tab')
      await page.keyboard.type(text)
    }
    await page.keyboard.press('Enter')
    await dialog.getByText(`Added the route push[zen==one]=${target.url}/hooks?…`).waitFor()
    await page.keyboard.press('Enter')
    await dialog.waitFor({ state: 'detached' })
    await tab.relay.deliver({ body: '{"zen":"one"}' })
    await target.has(1)

    page.removeAllListeners('dialog')
    page.once('dialog', (asked) => void asked.accept())
    await page.getByRole('button', { name: 'Remove the route to app' }).click()
    await page.getByText('No targets').waitFor()
    const expected = 'Failed to load resource: the server responded with a status of 400 (Bad Request)'
    expect(tab.faults).toEqual([expected])
  })

  it('is a source, whose secret is not shown, and is gone from the page', async () => {
    await using tab = await openDesk({ path: '/inspect/state' })
    const { page } = tab
    await page.getByRole('button', { name: 'Add a source…' }).click()
    const dialog = page.getByRole('dialog', { name: 'Add a source' })
    await dialog.getByLabel('Scheme').fill('stripe')
    const secret = 'whsec_0123456789abcdef'
    await dialog.getByLabel('Secret').fill(secret)
    expect(await dialog.getByLabel('Secret').getAttribute('type')).toBe('password')
    await page.keyboard.press('Enter')
    const address = `${tab.relay.address}/webhook/stripe`
    await dialog.getByText(`The address to enter at the sender: ${address}`).waitFor()
    await page.getByRole('button', { name: 'Done' }).click()
    await page.getByText(address).waitFor()
    expect([await page.content(), page.url(), tab.relay.err + tab.relay.out].join()).not.toContain(secret)
    expect(tab.faults).toEqual([])
  })

  it('is no hook while nobody is signed in, and says how', async () => {
    await using tab = await openDesk({ path: '/inspect/state' })
    const { page } = tab
    await page.getByRole('button', { name: 'Add a hook…' }).click()
    await page.getByRole('dialog').getByText('Nobody is signed in. Sign in with relay login').waitFor()
    expect(await page.getByRole('button', { name: 'Add the hook' }).isEnabled()).toBe(false)
  })
})
