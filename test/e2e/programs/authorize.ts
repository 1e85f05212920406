// Plays the browser that relay opens, and the person in front of it: goes to the address and presses Authorize.
import { launchBrowser } from '../../helpers/browser.js'

const [, , address = ''] = process.argv
const browser = await launchBrowser()
const page = await browser.newPage()
await page.goto(address)
await page.getByRole('button', { name: 'Authorize' }).click()
await page.waitForURL('**/?auth=*')
await browser.close()
