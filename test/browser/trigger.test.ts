import { expect, it } from 'vitest'
import { inspector, openDesk, violations } from '../kit/browser.js'
import { describeWith } from '../kit/needs.js'
import { receiver, valuesOf } from '../kit/receiver.js'

describeWith('chromium', 'the trigger of the inspector', () => {
  it('is offered by an empty list; finds an event, shows its payload for editing and sends it, by keys alone', async () => {
    await using target = await receiver()
    await using tab = await openDesk({ flags: ['--forward', `app=${target.url}`] })
    const { page } = tab
    await inspector.nothing(page).getByText('No deliveries yet').waitFor()
    await page.getByRole('region', { name: 'Deliveries' }).getByRole('button', { name: 'Trigger…' }).click()
    const dialog = page.getByRole('dialog', { name: 'Trigger a delivery' })
    await inspector.firstOfDialog(page).waitFor()
    await dialog.getByRole('button', { name: 'push', exact: true }).waitFor()

    await page.keyboard.type('closed issues')
    await dialog.getByText('1 event of 1 source').waitFor()
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('Enter')
    await page.getByRole('dialog', { name: 'Trigger issues.closed of github' }).waitFor()
    await inspector.focusedEditor(page).waitFor()
    expect(await inspector.editor(page).textContent()).toContain('"action": "closed"')
    expect(await violations(page)).toEqual([])

    await page.keyboard.press('Control+a')
    await page.keyboard.insertText('{"action":"closed","made":"here"')
    await page.getByText('The payload is not JSON: line 1, column 33').waitFor()
    expect(await page.getByRole('button', { name: 'Send', exact: true }).isEnabled()).toBe(false)
    await page.keyboard.insertText('}')
    await page.getByText('Sent as its sender would').waitFor()
    await page.getByRole('button', { name: 'Send', exact: true }).focus()
    await page.keyboard.press('Enter')
    await page.waitForURL('**/deliveries/1')
    await target.has(1)
    const [received] = target.received
    expect(received?.body.toString()).toBe('{"action":"closed","made":"here"}')
    expect(received && valuesOf(received, 'x-github-event')).toEqual(['issues'])
    expect(tab.faults).toEqual([])
  })

  it('goes back to the events, asks before an edit is lost, and names what is wrong with a payload of one’s own', async () => {
    await using tab = await openDesk()
    const { page } = tab
    await page.keyboard.press('t')
    await page.getByRole('button', { name: 'ping', exact: true }).click()
    await inspector.focusedEditor(page).waitFor()
    await page.getByRole('button', { name: 'Other event' }).click()
    await inspector.firstOfDialog(page).waitFor()
    await page.getByRole('button', { name: 'A payload of your own' }).click()
    await inspector.focusedEditor(page).waitFor()
    await page.keyboard.insertText('{}')
    await page.getByRole('button', { name: 'Send', exact: true }).click()
    await page.getByText('Not sent: The body names no event. Give it in the field Event').waitFor()
    await page.getByRole('button', { name: 'Other event' }).click()
    const question = 'dialog: Close without sending? Your edit is lost.'
    await expect.poll(() => tab.faults.filter((fault) => fault.startsWith('dialog'))).toEqual([question])
    await page.getByRole('dialog').getByLabel('Event').fill('made_up')
    await page.getByRole('button', { name: 'Send', exact: true }).click()
    await page.waitForURL('**/deliveries/1')
    await page.getByRole('heading', { level: 1, name: 'made_up' }).waitFor()
  })
})
