// npm run bench:inspect-page: frames and memory of the inspector's page while deliveries arrive, by Chromium's own tracing. Needs
// Debian's chromium. The figures are recorded in docs/decisions/032-the-inspectors-pages.md.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import type { CDPSession, Page } from 'playwright-core'
import { launchBrowser } from '../test/helpers/browser.js'
import { openInspector, waitUntilLive } from '../test/helpers/inspector-page.js'
import { ask } from './rig/ask.js'
import { temporaryFolder } from './rig/folder.js'
import { SECRET } from './rig/push.js'
import { RELAY, startProgram, startRelay } from './rig/server.js'

const PER_SECOND = 500
const SECONDS = 30

/** Something moves in every frame, so that the browser draws as many as it can: tracing then shows those that it could not. */
const MOVE = `
  const box = document.body.appendChild(document.createElement('i'))
  box.style.cssText = 'position:fixed;width:1px;height:1px;background:red'
  let n = 0
  const move = () => { box.style.transform = 'translateX(' + (n++ % 9) + 'px)'; requestAnimationFrame(move) }
  move()`

interface Measured {
  readonly framesPerSecond: number
  /** Frames of the slowest second. */
  readonly slowest: number
  readonly longestGapMs: number
  /** MiB of the page's JavaScript, after collecting garbage. */
  readonly heapMiB: number
  readonly elements: number
}

using home = temporaryFolder()
const env = { RELAY_HOME: home.path, RELAY_WEBHOOK_SECRET: SECRET }
await using relay = await startRelay(env)
await using client = await startProgram('client', {})
const browser = await launchBrowser()
try {
  await using tab = await openInspector(browser, { url: relay.url, code: issueCode })
  const { page } = tab
  await waitUntilLive(page)
  await page.evaluate(MOVE)
  const session = await page.context().newCDPSession(page)
  const burst = (): Promise<unknown> =>
    ask(client, 'paced', { to: relay.url, count: PER_SECOND * SECONDS, perSecond: PER_SECOND })
  for (const round of [1, 2])
    print(`${PER_SECOND}/s for ${SECONDS} s, round ${round}`, await measure(page, session, burst))
} finally {
  await browser.close()
}

async function issueCode(): Promise<string> {
  const args = [RELAY, 'inspect', '--no-browser', '--json']
  const { stdout } = await promisify(execFile)(process.execPath, args, {
    env: { PATH: process.env['PATH'], HOME: home.path, ...env },
  })
  const { code }: { code: string } = JSON.parse(stdout)
  return code
}

async function measure(
  page: Page,
  session: CDPSession,
  meanwhile: () => Promise<unknown>,
): Promise<Measured> {
  const drawn: number[] = []
  const onData = ({ value }: { readonly value: readonly object[] }): void => {
    for (const event of value) if ('name' in event && event.name === 'DrawFrame') drawn.push(instantOf(event))
  }
  session.on('Tracing.dataCollected', onData)
  await session.send('Tracing.start', {
    transferMode: 'ReportEvents',
    traceConfig: {
      includedCategories: ['disabled-by-default-devtools.timeline.frame', 'devtools.timeline.frame'],
    },
  })
  await meanwhile()
  const complete = new Promise((resolve) => session.once('Tracing.tracingComplete', resolve))
  await session.send('Tracing.end')
  await complete
  session.off('Tracing.dataCollected', onData)
  await session.send('HeapProfiler.collectGarbage')
  const { usedSize } = await session.send('Runtime.getHeapUsage')
  return { ...framesOf(drawn), heapMiB: usedSize / 1_048_576, elements: await page.locator('*').count() }
}

/** In milliseconds. */
function instantOf(event: object): number {
  return 'ts' in event ? Number(event.ts) / 1000 : Number.NaN
}

function framesOf(drawn: readonly number[]): Pick<Measured, 'framesPerSecond' | 'slowest' | 'longestGapMs'> {
  const times = drawn.toSorted((one, other) => one - other)
  const [first = 0, last = 0] = [times[0], times.at(-1)]
  const gaps = times.slice(1).map((time, i) => time - (times[i] ?? time))
  const seconds = new Map<number, number>()
  for (const time of times) {
    const second = Math.floor((time - first) / 1000)
    seconds.set(second, (seconds.get(second) ?? 0) + 1)
  }
  // The last second is not whole.
  const whole = [...seconds.values()].slice(0, -1)
  return {
    framesPerSecond: (1000 * (times.length - 1)) / (last - first),
    slowest: Math.min(...whole),
    longestGapMs: Math.max(...gaps),
  }
}

function print(what: string, { framesPerSecond, slowest, longestGapMs, heapMiB, elements }: Measured): void {
  const figures = [
    `${framesPerSecond.toFixed(1)} frames/s`,
    `slowest second ${slowest}`,
    `longest gap ${longestGapMs.toFixed(0)} ms`,
    `heap ${heapMiB.toFixed(1)} MiB`,
    `${elements} elements`,
  ]
  process.stdout.write(`${what}: ${figures.join(', ')}\n`)
}
