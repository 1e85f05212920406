import { chromium, type Browser } from 'playwright-core'

/** Chromium without a sandbox of its own (containers have none to give), and without calls home. */
const ARGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

/** The system's Chromium, headless, in a suite `describeWith('chromium', …)`. */
export async function launchBrowser(): Promise<Browser> {
  return chromium.launch({ executablePath: '/usr/bin/chromium', args: ARGS })
}
