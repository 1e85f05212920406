import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import path from 'node:path'
import { promisify } from 'node:util'
import type { Browser, Page } from 'playwright-core'

const SIZE = { width: 1280, height: 800 }

/** The deliveries in the pictures, oldest first. The sandbox's own ping comes before them. */
const EVENTS = [
  'star.created',
  'issues.opened',
  'issue_comment.created',
  'create',
  'push',
  'check_run.completed',
  'release.published',
  'push',
  'pull_request.opened',
]

export interface Tour {
  readonly browser: Browser
  /** Where the pictures go. */
  readonly folder: string
  /** The built program. */
  readonly program: string
  readonly env: Readonly<Record<string, string | undefined>>
  /** Starts `relay serve` with these arguments, and resolves when it listens. */
  serve(args: readonly string[]): Promise<{ readonly url: string; stop(): Promise<void> }>
}

/** Pictures of the inspector, light and dark: a delivery next to the list, one that failed, a refused request. */
export async function drawInspector(tour: Tour): Promise<void> {
  const target = createServer((incoming, outgoing) => {
    incoming.resume()
    const isBroken = incoming.url === '/tests'
    outgoing.writeHead(isBroken ? 422 : 200, { 'Content-Type': 'application/json' })
    outgoing.end(isBroken ? '{"error":"unknown check suite"}\n' : '{"queued":true}\n')
  }).listen(0, '127.0.0.1')
  await once(target, 'listening')
  const address = target.address()
  if (typeof address !== 'object' || !address) throw new Error('unreachable: it listens on a port')
  const to = `http://127.0.0.1:${address.port}`
  const routes = ['--forward', `builds=*=${to}/builds`, '--forward', `tests=check_run.*=${to}/tests`]
  const served = await tour.serve([
    'serve',
    '--sandbox',
    ...routes,
    '--forward',
    'deploy=release=http://127.0.0.1:9',
  ])
  try {
    for (const event of EVENTS) await run(tour, ['trigger', event])
    await refuse(served.url)
    for (const colorScheme of ['light', 'dark'] as const) await draw(tour, served.url, colorScheme)
  } finally {
    await served.stop()
    target.close()
  }
}

async function draw(tour: Tour, url: string, colorScheme: 'light' | 'dark'): Promise<void> {
  const page = await tour.browser.newPage({ viewport: SIZE, colorScheme, reducedMotion: 'reduce' })
  const { code }: { code: string } = JSON.parse(await run(tour, ['inspect', '--no-browser', '--json']))
  await page.goto(`${url}/inspect/open`)
  await page.getByLabel('Code').fill(code)
  await page.getByRole('button', { name: 'Open' }).click()
  await page.locator('.connection-live').waitFor()
  const save = (name: string): Promise<unknown> =>
    page.screenshot({ path: path.join(tour.folder, `inspect-${name}-${colorScheme}.png`) })
  const numberOf = (event: string): number => EVENTS.indexOf(event) + 2
  await open(page, `${url}/inspect/deliveries/${numberOf('pull_request.opened')}`, '.code-view .cm-line')
  await save('delivery')
  await open(page, `${url}/inspect/deliveries/${numberOf('check_run.completed')}`, '.code-view .cm-line')
  await save('failed')
  await open(page, `${url}/inspect/refused/1`, '.detail .sentences')
  await save('refused')
  await page.close()
}

async function open(page: Page, address: string, shown: string): Promise<void> {
  await page.goto(address)
  await page.locator('.connection-live').waitFor()
  await page.locator(shown).first().waitFor()
}

async function run({ program, env }: Tour, args: readonly string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(process.execPath, [program, ...args], {
    env: { ...env, RELAY_PROFILE: 'sandbox' },
  })
  return stdout
}

/** A request whose signature was made with another secret. */
async function refuse(url: string): Promise<void> {
  const headers = {
    'Content-Type': 'application/json',
    'X-GitHub-Event': 'push',
    'X-GitHub-Delivery': '72d3162e-cc78-11e3-81ab-4c9367dc0958',
    'X-Hub-Signature-256': `sha256=${'5d61605c3feea9799210ddcb71307d4ba264225f'.padEnd(64, '0')}`,
  }
  await (await fetch(`${url}/webhook`, { method: 'POST', headers, body: '{"ref":"refs/heads/main"}' })).text()
}
