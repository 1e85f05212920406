// How quick the inspector's page is: frames while deliveries arrive, by Chromium's own tracing, and large payloads.
import { existsSync } from 'node:fs'
import path from 'node:path'
import { type Browser, type CDPSession, chromium, type Page } from 'playwright-core'
import { closedPort } from '../test/kit/ports.js'
import { delivery, load, smallPush } from './load.js'
import { type Benchmark, type Figures, measure, notMeasured, pair, Relay, thousands } from './rig.js'

const CHROMIUM = '/usr/bin/chromium'
const ROUNDS = 3
const BURST = { perSecond: 500, connections: 8 }
const COUNT = 500 * 10
/** Two seconds: the last second of a burst does not count. */
const SHORT_COUNT = 500 * 2.5
/** Without calls home, and without a sandbox of its own, for which containers lack the rights. */
const ARGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-background-networking',
  '--disable-component-update',
]
/** Bytes of a payload of each size, and what a line of the page shows once it is there. */
const MIB = 1_048_576
const LARGE = { '1 MB': MIB, '25 MB': 25 * MIB - 1024 } as const
/** What an open page asks again, below the API's address. `200` is also what the live stream reads at once. */
const ASKED = {
  list: 'deliveries?limit=50',
  'list of 200': 'deliveries?limit=200',
  'list of an event': 'deliveries?event=push&limit=50',
  'list of failed': 'deliveries?status=failed&limit=50',
  'list of an hour': 'deliveries?since=1h&limit=50',
  'search in payloads': 'deliveries?repo=octo%2Fdemo&text=no-such-text&limit=50',
  delivery: 'deliveries/1',
  'last hour': 'timeline',
  state: 'state',
  refused: 'refused',
}
/** What a long journal has. */
const LONG = { deliveries: [delivery('push', smallPush('octo/demo'))], count: 1_000_000 }
/** Moves something in every frame, so that the browser draws as many as it can. */
const MOVE = `
  const box = document.body.appendChild(document.createElement('i'))
  box.style.cssText = 'position:fixed;width:1px;height:1px;background:red'
  let n = 0
  const move = () => { box.style.transform = 'translateX(' + (n++ % 9) + 'px)'; requestAnimationFrame(move) }
  move()`

export const inspectPage: Benchmark = {
  about: `
The inspector's page in Chromium, of an empty journal (with --full, of ${thousands(LONG.count)} deliveries). First,
how long the page loads until it has painted a delivery, and how long a new
delivery takes to appear. Then ${BURST.perSecond} pushes of 7,678 bytes arrive per second for
${COUNT / BURST.perSecond} s: frames that are drawn, and afterwards the page's JavaScript heap and its
elements. Then what each request that an open page repeats holds the service's event loop for, at the
longest, in processor time. At last the first lines of payloads of 1 and 25 MB, and of the difference of two of 1 MB with 75 changes,
from the address to the screen. ${ROUNDS} rounds, each in a new tab.`,

  async run({ size, rounds }, scope) {
    if (!existsSync(CHROMIUM)) return [notMeasured('all of it', `${CHROMIUM} does not exist`)]
    const browser = await chromium.launch({ executablePath: CHROMIUM, args: ARGS })
    scope.defer(() => browser.close())
    const relays = await pair(async (build) => {
      const env = {
        NODE_OPTIONS: `--import=${path.resolve('bench/turns.mjs')}`,
        TURNS_PORT: `${await closedPort()}`,
      }
      return new Relay(scope, build, env).serve('--max-body', String(25 * MIB))
    })
    if (size === 'full')
      for (const relay of [relays.relay, relays.earlier]) if (relay) await load(relay.url, LONG)
    const count = size === 'short' ? SHORT_COUNT : COUNT
    return measure(rounds(ROUNDS), relays, (relay) => figuresOf(browser, relay, count))
  },
}

async function figuresOf(browser: Browser, relay: Relay, count: number): Promise<Figures> {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } })
  try {
    const page = await context.newPage()
    await open(page, relay)
    const loads = await paints(page, relay)
    const appearing = await appears(page, relay, async () => {})
    await page.evaluate(MOVE)
    const session = await context.newCDPSession(page)
    const drawn = await framesDuring(session, () => load(relay.url, { ...BURST, count }))
    await session.send('HeapProfiler.collectGarbage')
    const { usedSize } = await session.send('Runtime.getHeapUsage')
    return {
      'page loads, ms': loads,
      'a delivery appears, ms': appearing,
      ...framesOf(drawn),
      'heap, MiB': usedSize / 1_048_576,
      elements: await page.locator('*').count(),
      ...(await turnsOf(page, relay)),
      ...(await payloadsOf(page, relay)),
    }
  } finally {
    await context.close()
  }
}

/** Opens the inspector with a one-time code, as a person does. */
async function open(page: Page, relay: Relay): Promise<void> {
  const { out } = await relay.run(['inspect', '--no-browser', '--json'])
  const { code }: { readonly code: string } = JSON.parse(out)
  await page.goto(`${relay.url}/inspect/open`)
  await page.getByLabel('Code').fill(code)
  await page.getByRole('button', { name: 'Open' }).click()
  await page.waitForURL(`${relay.url}/inspect/`)
  await page.locator('.connection-live').waitFor()
}

/** Milliseconds from the address to the frame that has the newest delivery, by the page's own clock. */
async function paints(page: Page, relay: Relay): Promise<number> {
  const repo = `octo/p${Math.random().toString(36).slice(2)}`
  await load(relay.url, { deliveries: [delivery('push', smallPush(repo))], count: 1, connections: 1 })
  await page.addInitScript({
    content: `const observer = new MutationObserver(() => {
      if (!document.body.textContent.includes('${repo}')) return
      observer.disconnect()
      requestAnimationFrame(() => setTimeout(() => performance.mark('painted')))
    })
    observer.observe(document, { childList: true, subtree: true })`,
  })
  await page.reload()
  const mark = await page.waitForFunction(() => performance.getEntriesByName('painted')[0]?.startTime)
  return Number(await mark.jsonValue())
}

/** Milliseconds until the page shows a delivery that comes before `act`. */
async function appears(page: Page, relay: Relay, act: () => Promise<unknown>): Promise<number> {
  const repo = `octo/r${Math.random().toString(36).slice(2)}`
  await load(relay.url, { deliveries: [delivery('push', smallPush(repo))], count: 1, connections: 1 })
  const begun = performance.now()
  await act()
  await page.getByText(repo).first().waitFor()
  return performance.now() - begun
}

/** Milliseconds of processor time that the longest turn of the event loop takes while each request is answered. */
async function turnsOf(page: Page, relay: Relay): Promise<Figures> {
  for (let i = 0; i < 100; i++) await fetch(`${relay.url}/webhook`, { method: 'POST', body: '{}' })
  const ask = async () => Number(await (await fetch(`http://127.0.0.1:${relay.env['TURNS_PORT']}`)).text())
  const figures: Record<string, number> = {}
  // Away from the relay, so that nothing else is asked.
  await page.goto('about:blank')
  for (const [what, address] of Object.entries(ASKED)) {
    await ask()
    await page.request.get(`${relay.url}/inspect/api/${address}`)
    figures[`${what}, longest turn, ms`] = await ask()
  }
  return figures
}

/** Milliseconds until large payloads are shown, each after the page was on the list. */
async function payloadsOf(page: Page, relay: Relay): Promise<Figures> {
  const lineOf = async (address: string): Promise<number> => {
    await page.goto(`${relay.url}/inspect/`)
    await page.locator('.connection-live').waitFor()
    const begun = performance.now()
    await page.goto(`${relay.url}/inspect/deliveries/${address}`)
    await page.locator('.cm-line').nth(5).waitFor()
    return performance.now() - begun
  }
  const one = await sendLarge(relay, LARGE['1 MB'], 'one')
  const other = await sendLarge(relay, LARGE['1 MB'], 'other')
  const huge = await sendLarge(relay, LARGE['25 MB'], 'one')
  return {
    'payload of 1 MB, ms': await lineOf(one),
    'payload of 25 MB, ms': await lineOf(huge),
    'difference of two of 1 MB, ms': await lineOf(`${other}/compare/${one}`),
  }
}

/** Sends a payload of so many bytes at most, in which 75 values are `word`, and resolves with its number. */
async function sendLarge(relay: Relay, size: number, word: string): Promise<string> {
  const value = 'y'.repeat(220)
  const count = Math.floor(size / 240)
  const every = Math.ceil(count / 75)
  const items = Array.from({ length: count }, (_, i) => ({ i, v: i % every === 0 ? word : value }))
  // Unlike any other, so that it is no duplicate.
  const payload = { nonce: `${word} ${performance.now()}`, items }
  await load(relay.url, { deliveries: [delivery('push', payload)], count: 1, connections: 1 })
  const { out } = await relay.run(['log', '--json', '-n', '1'])
  const { n }: { readonly n: number } = JSON.parse(out)
  return String(n)
}

/** When frames were drawn, in milliseconds. */
async function framesDuring(session: CDPSession, act: () => Promise<unknown>): Promise<readonly number[]> {
  const drawn: number[] = []
  const onData = ({ value }: { readonly value: readonly object[] }): void => {
    for (const event of value)
      if ('name' in event && event.name === 'DrawFrame' && 'ts' in event) drawn.push(Number(event.ts) / 1000)
  }
  session.on('Tracing.dataCollected', onData)
  const includedCategories = ['disabled-by-default-devtools.timeline.frame', 'devtools.timeline.frame']
  await session.send('Tracing.start', { transferMode: 'ReportEvents', traceConfig: { includedCategories } })
  await act()
  const complete = new Promise((resolve) => session.once('Tracing.tracingComplete', resolve))
  await session.send('Tracing.end')
  await complete
  session.off('Tracing.dataCollected', onData)
  return drawn.toSorted((one, other) => one - other)
}

function framesOf(times: readonly number[]): Figures {
  const [first = 0, last = 0] = [times[0], times.at(-1)]
  const gaps = times.slice(1).map((time, i) => time - (times[i] ?? time))
  const inSecond = (second: number) => times.filter((time) => Math.floor((time - first) / 1000) === second)
  // The last second is not whole.
  const seconds = Array.from({ length: Math.floor((last - first) / 1000) }, (_, i) => inSecond(i).length)
  return {
    'frames/s': (1000 * (times.length - 1)) / (last - first),
    'frames in the slowest second': Math.min(...seconds),
    'longest gap, ms': Math.max(...gaps),
  }
}
