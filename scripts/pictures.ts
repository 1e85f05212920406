// Makes docs/pictures/ from the built program and its sandbox: `npm run build`, then `npm run pictures`. Needs Debian's chromium, and script of util-linux.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { chromium } from 'playwright-core'

const PROGRAM = path.resolve('dist/bin/relay.cjs')
const FOLDER = path.resolve('docs/pictures')

const STYLE = `
body { margin: 0; padding: 16px; background: #0d1117; display: grid; gap: 16px }
section { border: 1px solid #30363d; border-radius: 8px; background: #010409; color: #e6edf3 }
h2 { margin: 0; padding: 6px 14px; font: 600 12px system-ui, sans-serif; color: #8b949e; border-bottom: 1px solid #30363d }
pre { margin: 0; padding: 12px 14px; font: 13px/1.5 ui-monospace, monospace; white-space: pre-wrap }
b { font-weight: 700 } .c2 { color: #8b949e } .c31 { color: #ff7b72 } .c32 { color: #3fb950 } .c33 { color: #d29922 }
`

/** The deliveries in the inspector, oldest first. The sandbox's own ping comes before them. */
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

const home = mkdtempSync(path.join(tmpdir(), 'relay-pictures-'))
mkdirSync(FOLDER, { recursive: true })
const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] })
try {
  await drawTour()
  await drawInspector()
} finally {
  await browser.close()
  rmSync(home, { recursive: true })
}

/** Starts relay with a data folder of that name, in a terminal of its own (of util-linux) or with pipes. */
function relay(name: string, args: readonly string[], isTerminal = false) {
  const env = {
    PATH: process.env['PATH'],
    HOME: home,
    RELAY_USER: 'ada',
    RELAY_HOME: path.join(home, name),
    FORCE_COLOR: '1',
    ...(args[0] !== 'serve' && { RELAY_PROFILE: 'sandbox' }),
  }
  if (!isTerminal) return spawn(process.execPath, [PROGRAM, ...args], { env, stdio: 'pipe' })
  const command = [process.execPath, PROGRAM, ...args].map((word) => `'${word}'`).join(' ')
  return spawn('script', ['-qfec', `stty cols 100 -echo; exec ${command}`, '/dev/null'], {
    env,
    stdio: 'pipe',
  })
}

/** A command and all that it prints; `onAddress` gets the first web address in it. */
async function run(name: string, args: readonly string[], onAddress?: (address: string) => Promise<void>) {
  const child = relay(name, args, name === 'tour')
  child.stdin.end()
  let [printed, opened] = ['', Promise.resolve()]
  const print = (chunk: Buffer): void => {
    const [before] = /http:\/\/\S+/.exec(printed) ?? []
    printed += chunk.toString().replaceAll('\r', '')
    const [address] = /http:\/\/\S+/.exec(printed) ?? []
    if (before === undefined && address !== undefined && onAddress) opened = onAddress(address)
  }
  child.stdout.on('data', print)
  child.stderr.on('data', print)
  await once(child, 'close')
  await opened
  const words = args.map((arg) => (/^[\w./:#=-]+$/.test(arg) ? arg : `'${arg}'`))
  return { printed, shown: `$ relay ${words.join(' ')}\n${printed}` }
}

/** The README's tour in two terminals. */
async function drawTour(): Promise<void> {
  // Counts the bytes of payloads of pull requests.
  const route = 'pull_request.*=wc -c'
  const serve = relay('tour', ['serve', '--sandbox', '--exec', route], true)
  let served = `$ relay serve --sandbox --exec '${route}'\n`
  const lines = createInterface(serve.stdout).on('line', (line) => (served += `${line}\n`))
  while (!served.includes('#1  ')) await once(lines, 'line')
  const shell = [
    await run('tour', ['trigger', 'pull_request.opened']),
    await run('tour', ['login', '--no-browser'], authorize),
    await run('tour', ['comment', 'octo/demo#1', 'Hello from the shell']),
    await run('tour', ['merge', 'octo/demo#2']),
    await run('tour', ['log']),
  ]
  // The webhook of the merge may still be on its way.
  while (served.split('wc │').length < 3) await once(lines, 'line')
  const shown = served.trimEnd()
  serve.stdin.write('q')
  await once(serve, 'close')
  const page = await browser.newPage({ viewport: { width: 980, height: 100 }, deviceScaleFactor: 1.5 })
  const first = terminal('first terminal', shown)
  const second = terminal('second terminal', shell.map(({ shown }) => shown).join('\n'))
  await page.setContent(`<style>${STYLE}</style>${first}${second}`)
  await page.screenshot({ path: path.join(FOLDER, 'tour.png'), fullPage: true })
  await page.close()
}

async function authorize(address: string): Promise<void> {
  const page = await browser.newPage()
  await page.goto(address)
  await page.getByRole('button', { name: 'Authorize' }).click()
  await page.getByRole('heading', { name: 'You are signed in' }).waitFor()
  await page.close()
}

/** Text with the few colours that relay uses (SGR codes of ECMA-48 section 8.3.117), as markup. */
function terminal(title: string, text: string): string {
  const [start = '', ...parts] = text
    .trimEnd()
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .split('\u001b')
  const styled = parts.map((part) => {
    const [, code = '', rest = ''] = /^\[(\d+)m([^]*)$/.exec(part) ?? []
    if (code === '1') return `<b>${rest}`
    return ['0', '22', '39'].includes(code) ? `</b></span>${rest}` : `<span class="c${code}">${rest}`
  })
  return `<section><h2>${title}</h2><pre>${start}${styled.join('')}</pre></section>`
}

/** The inspector, light and dark: a delivery next to the list, and one that failed. */
async function drawInspector(): Promise<void> {
  const target = createServer((incoming, outgoing) => {
    incoming.resume()
    const isBroken = incoming.url === '/tests'
    outgoing.writeHead(isBroken ? 422 : 200, { 'Content-Type': 'application/json' })
    outgoing.end(isBroken ? '{"error":"unknown check suite"}\n' : '{"queued":true}\n')
  }).listen(0, '127.0.0.1')
  await once(target, 'listening')
  const { port } = Object(target.address())
  const routes = [
    `builds=*=${port}/builds`,
    `tests=check_run.*=${port}/tests`,
    'deploy=release=http://127.0.0.1:9',
  ]
  const flags = routes.flatMap((route) => ['--forward', route])
  const serve = relay('inspector', ['serve', '--sandbox', '--json', ...flags])
  const [line] = await once(createInterface(serve.stdout), 'line')
  const { url }: { url: string } = JSON.parse(String(line))
  for (const event of EVENTS) await run('inspector', ['trigger', event])
  for (const colorScheme of ['light', 'dark'] as const) {
    const viewport = { width: 1280, height: 800 }
    const page = await browser.newPage({ viewport, colorScheme, reducedMotion: 'reduce' })
    const { printed } = await run('inspector', ['inspect', '--no-browser', '--json'])
    await page.goto(`${url}/inspect/open`)
    await page.getByLabel('Code').fill(JSON.parse(printed).code)
    await page.getByRole('button', { name: 'Open' }).click()
    for (const [name, event] of [
      ['delivery', 'pull_request.opened'],
      ['failed', 'check_run.completed'],
    ] as const) {
      await page.locator('.connection-live').waitFor()
      await page.goto(`${url}/inspect/deliveries/${EVENTS.indexOf(event) + 2}`)
      await page.locator('.code-view .cm-line').first().waitFor()
      await page.screenshot({ path: path.join(FOLDER, `inspect-${name}-${colorScheme}.png`) })
    }
    await page.close()
  }
  serve.kill('SIGTERM')
  await once(serve, 'close')
  target.close()
}
