// Makes docs/pictures/ from the built program and its sandbox: `npm run build`, then `npm run pictures`. Needs Debian's chromium.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Browser, chromium } from 'playwright-core'
import { drawInspector } from './pictures/inspector.js'

const PROGRAM = path.resolve('dist/bin/relay.cjs')
const FOLDER = path.resolve('docs/pictures')
/** Counts the bytes of payloads of pull requests. */
const ROUTE = 'pull_request.*=wc -c'
const CHROMIUM_FLAGS = ['--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking']

const STYLE = `
body { margin: 0; padding: 16px; background: #0d1117; display: grid; gap: 16px }
section { border: 1px solid #30363d; border-radius: 8px; background: #010409; color: #e6edf3 }
h2 { margin: 0; padding: 6px 14px; font: 600 12px system-ui, sans-serif; color: #8b949e; border-bottom: 1px solid #30363d }
pre { margin: 0; padding: 12px 14px; font: 13px/1.5 ui-monospace, monospace; white-space: pre-wrap }
b { font-weight: 700 } .c2 { color: #8b949e } .c31 { color: #ff7b72 } .c32 { color: #3fb950 } .c33 { color: #d29922 }
`

const home = mkdtempSync(path.join(tmpdir(), 'relay-pictures-'))
const env = {
  PATH: process.env['PATH'],
  HOME: home,
  USER: 'ada',
  RELAY_USER: 'ada',
  RELAY_HOME: path.join(home, 'data'),
  FORCE_COLOR: '1',
}

mkdirSync(FOLDER, { recursive: true })
const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: CHROMIUM_FLAGS })
try {
  await takePicture(browser, await tour(browser))
  await drawInspector({
    browser,
    folder: FOLDER,
    program: PROGRAM,
    env: { ...env, RELAY_HOME: path.join(home, 'inspector') },
    serve: serveInspected,
  })
} finally {
  await browser.close()
  rmSync(home, { recursive: true })
}

/** Starts a relay whose inspector is drawn. */
async function serveInspected(args: readonly string[]): Promise<{ url: string; stop(): Promise<void> }> {
  const child = spawn(process.execPath, [PROGRAM, ...args, '--json'], {
    env: { ...env, RELAY_HOME: path.join(home, 'inspector') },
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const [line] = await once(createInterface(child.stdout), 'line')
  const { url }: { url: string } = JSON.parse(String(line))
  return {
    url,
    async stop() {
      child.kill('SIGTERM')
      await once(child, 'close')
    },
  }
}

interface Terminal {
  readonly title: string
  /** The output with its colour codes. */
  readonly text: string
}

/** Runs the README's tour in two terminals. */
async function tour(browser: Browser): Promise<readonly Terminal[]> {
  const serve = relay('serve', '--sandbox', '--exec', ROUTE)
  let served = `$ relay serve --sandbox --exec '${ROUTE}'\n`
  const lines = createInterface(serve.stderr)
  lines.on('line', (line) => (served += `${line}\n`))
  while (!served.includes('#1  ')) await once(lines, 'line')
  const shell = [
    await run(['trigger', 'pull_request.opened']),
    await run(['login', '--no-browser'], (address) => authorize(browser, address)),
    await run(['comment', 'octo/demo#1', 'Hello from the shell']),
    await run(['merge', 'octo/demo#2']),
    await run(['log']),
  ]
  // The last webhook of the sandbox may still be on its way.
  await sleep(500)
  serve.kill('SIGTERM')
  await once(serve, 'close')
  return [
    { title: 'first terminal', text: served.slice(0, served.lastIndexOf('\n', served.length - 2)) },
    { title: 'second terminal', text: shell.join('\n') },
  ]
}

function relay(...args: readonly string[]) {
  const profile = args[0] === 'serve' ? {} : { RELAY_PROFILE: 'sandbox' }
  return spawn(process.execPath, [PROGRAM, ...args], { env: { ...env, ...profile }, stdio: 'pipe' })
}

/** A command and all that it prints; `onAddress` gets the first web address in it. */
async function run(args: readonly string[], onAddress?: (address: string) => Promise<void>): Promise<string> {
  const child = relay(...args)
  child.stdin.end()
  let text = `$ relay ${args.map(quoted).join(' ')}\n`
  let opened: Promise<void> | undefined
  const print = (chunk: Buffer): void => {
    text += chunk.toString()
    const [address] = /http:\/\/\S+/.exec(text) ?? []
    if (address !== undefined && onAddress) opened ??= onAddress(address)
  }
  child.stdout.on('data', print)
  child.stderr.on('data', print)
  await once(child, 'close')
  await opened
  return text
}

function quoted(arg: string): string {
  return /^[\w./:#=-]+$/.test(arg) ? arg : `'${arg}'`
}

async function authorize(browser: Browser, address: string): Promise<void> {
  const page = await browser.newPage()
  await page.goto(address)
  await page.getByRole('button', { name: 'Authorize' }).click()
  await page.getByRole('heading', { name: 'You are signed in' }).waitFor()
  await page.close()
}

async function takePicture(browser: Browser, terminals: readonly Terminal[]): Promise<void> {
  const page = await browser.newPage({ viewport: { width: 980, height: 100 }, deviceScaleFactor: 1.5 })
  await page.setContent(`<style>${STYLE}</style>${terminals.map(drawn).join('')}`)
  await page.screenshot({ path: path.join(FOLDER, 'tour.png'), fullPage: true })
  await page.close()
}

function drawn({ title, text }: Terminal): string {
  return `<section><h2>${title}</h2><pre>${withColours(text.trimEnd())}</pre></section>`
}

/** The few colours that relay uses (SGR codes of ECMA-48 section 8.3.117), as markup. */
function withColours(text: string): string {
  const escaped = text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
  return escaped
    .split('\u001b')
    .map((part, i) => {
      const [, code = '', rest = ''] = /^\[(\d+)m([^]*)$/.exec(part) ?? []
      if (i === 0 || code === '') return part
      if (code === '1') return `<b>${rest}`
      return ['0', '22', '39'].includes(code) ? `</b></span>${rest}` : `<span class="c${code}">${rest}`
    })
    .join('')
}
