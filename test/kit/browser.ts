import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { type Browser, type BrowserContextOptions, chromium, type Locator, type Page } from 'playwright-core'
import { Closing } from './closing.js'
import { oneTimeCode } from './inspector.js'
import { part } from './parts.js'
import { type Place, place, type Serving } from './place.js'
import { LIMIT_MS } from './limit.js'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const FIND_VIOLATIONS = readFileSync('test/kit/find-violations.js', 'utf8')
const FIND_OVERFLOW = readFileSync('test/kit/find-overflow.js', 'utf8')
const FIND_BAD_BREAKS = readFileSync('test/kit/find-bad-breaks.js', 'utf8')

let connected: Promise<Browser> | undefined

/** The run's one Chromium, without a window. Not to be closed: other tests use it. */
export function browser(): Promise<Browser> {
  connected ??= part('chromium').then((endpoint) => chromium.connect(endpoint))
  return connected
}

/** A tab of a browser that knows nothing of other tabs, and what went wrong in it. */
export interface Tab extends AsyncDisposable {
  readonly page: Page
  /** Violations of the Content Security Policy, errors on the console, errors of scripts, dialogs that a script opened. */
  readonly faults: string[]
}

/** Opens a tab, in a suite `describeWith('chromium', …)`. */
export async function newPage(options: BrowserContextOptions = {}): Promise<Tab> {
  const viewport = { width: 1440, height: 900 }
  const context = await (await browser()).newContext({ viewport, ...options })
  // Below the limit of a test, so that a failure names what was waited for.
  context.setDefaultTimeout(LIMIT_MS)
  const page = await context.newPage()
  const faults: string[] = []
  page.on('console', (message) => {
    if (message.type() === 'error') faults.push(message.text())
  })
  page.on('pageerror', ({ message }) => faults.push(message))
  page.on('dialog', (dialog) => {
    faults.push(`dialog: ${dialog.message()}`)
    void dialog.dismiss()
  })
  return { page, faults, [Symbol.asyncDispose]: () => context.close() }
}

/** Opens the inspector of a relay with a one-time code, as a person does, and goes to `path`. */
export async function openInspector(
  here: Place,
  { address }: Pick<Serving, 'address'>,
  { path = '/inspect/', ...options }: BrowserContextOptions & { readonly path?: string } = {},
): Promise<Tab> {
  await using starting = new Closing()
  const tab = starting.use(await newPage(options))
  const { page } = tab
  await page.goto(`${address}/inspect/open`)
  await page.getByLabel('Code').fill(await oneTimeCode(here))
  await page.getByRole('button', { name: 'Open' }).click()
  await page.waitForURL(`${address}/inspect/`)
  await page.getByRole('heading', { name: 'Deliveries' }).waitFor()
  if (path !== '/inspect/') await page.goto(address + path)
  starting.move()
  return tab
}

/** A tab with the inspector of a relay of its own. */
export interface Desk extends Tab {
  readonly relay: Serving
}

export interface DeskOptions extends BrowserContextOptions {
  readonly path?: string
  /** Of the deliveries that come before the tab is opened, `id-1`, `id-2` and so on, oldest first. */
  readonly bodies?: readonly string[]
  readonly flags?: readonly string[]
}

/** Starts `relay serve` with these flags, delivers what its inspector shows, and opens that in a tab. */
export async function openDesk({ bodies = [], flags = [], ...options }: DeskOptions = {}): Promise<Desk> {
  await using starting = new Closing()
  const here = starting.use(await place({ host: 'none' }))
  const relay = await here.serve(...flags)
  for (const [i, body] of bodies.entries()) await relay.deliver({ body, id: `id-${i + 1}` })
  const { page, faults } = starting.use(await openInspector(here, relay, options))
  const closing = starting.move()
  return { relay, page, faults, [Symbol.asyncDispose]: () => closing[Symbol.asyncDispose]() }
}

/** Holds requests to an address back until `release` is called; `held` resolves once there is one. */
export async function hold(page: Page, address: string) {
  let [release, arrive] = [(): void => {}, (): void => {}]
  const released = new Promise<void>((resolve) => (release = resolve))
  const held = new Promise<void>((resolve) => (arrive = resolve))
  await page.route(address, async (route) => {
    arrive()
    await released
    await route.continue()
  })
  return { held, release }
}

/** What the inspector shows, where a role and a name do not say it. No test names a class of its page. */
export const inspector = {
  // The list.
  list: (page: Page): Locator => page.locator('.pane-list'),
  rows: (page: Page): Locator => page.locator('.rows .row'),
  row: (page: Page, n: number): Locator => page.locator(`.rows .row[data-n="${n}"]`),
  focusedRow: (page: Page, n: number): Locator => page.locator(`.rows .row[data-n="${n}"]:focus`),
  /** The row at the top, if it is this delivery's. */
  topRow: (page: Page, n: number): Locator => page.locator(`.rows li:first-child .row[data-n="${n}"]`),
  /** A row that has just come in. */
  freshRow: (page: Page): Locator => page.locator('.fresh .row'),
  /** The marks of a state of forwarding. */
  marks: (page: Page, state: 'succeeded' | 'down'): Locator => page.locator(`.rows .mark-${state}`),
  /** What the list says when it has no row. */
  nothing: (page: Page): Locator => page.locator('.empty-title'),

  // A delivery.
  /** Its number, once it is this delivery that is shown. */
  number: (page: Page, n: number): Locator => page.locator('.head-n', { hasText: `#${n}` }),
  /** What is said of a delivery that is not there. */
  notFound: (page: Page): Locator => page.locator('.pane-detail .empty-title'),
  /** The lines of its payload. */
  payload: (page: Page): Locator => page.locator('.code-view .cm-line'),
  /** The payload's line with a value: `zen: "one"`, or `3: 12` for the fourth element of an array. */
  value: (page: Page, text: string): Locator => {
    const [, name = '', value = ''] = /^([^:]*): (.*)$/.exec(text) ?? []
    const line = /^\d+$/.test(name) ? value : `"${name}": ${value}`
    return page.locator('.code-view .cm-line').filter({ hasText: line })
  },
  /** The lines of the payload's bytes. */
  raw: (page: Page): Locator => page.locator('.code-view .cm-line'),
  /** What of a line of the payload has the colour of numbers. */
  numbers: (line: Locator): Locator => line.locator('.json-number'),
  /** Next to the payload's lines, what folds the value that begins there. */
  foldMarks: (page: Page): Locator => page.locator('.code-view').getByTitle('Fold line'),
  /** A character that would not be seen, made visible. */
  hiddenCharacters: (page: Page): Locator => page.locator('.hidden-char'),
  editor: (page: Page): Locator => page.locator('.editor .cm-content'),
  editorBox: (page: Page): Locator => page.locator('.editor'),
  focusedEditor: (page: Page): Locator => page.locator('.editor .cm-content:focus'),
  /** What has the focus when a dialog opens. */
  firstOfDialog: (page: Page): Locator => page.locator('dialog [data-first]:focus'),
  /** The lines that differ between two deliveries, those of the older one first; of the payload or the headers alone. */
  changes: (page: Page, part: 'Payload' | 'Headers' | '' = ''): Locator =>
    page.locator('.section', { hasText: part }).locator('.cm-changedLine'),
  /** What of a changed line differs, and the sign next to the line. */
  changedWords: (page: Page): Locator => page.locator('.cm-changedText'),
  changeSigns: (page: Page): Locator => page.locator('.cm-changedLineGutter'),
  /** Equal lines that are folded away. */
  equal: (page: Page): Locator => page.locator('.cm-collapsedLines'),
  /** The headers of an edit. */
  editedHeaders: (page: Page): Locator => page.locator('.edit-headers'),
  /** The parts of a delivery's page, from the top. */
  parts: (page: Page): Locator => page.locator('.detail h2, .actions'),
  /** The attempts at a target, the newest first. */
  attempts: (page: Page, target: string): Locator =>
    page.getByRole('list', { name: `Attempts at ${target}` }).locator('> li > details > summary'),
  /** How many attempts each target took, where it was more than one. */
  tries: (page: Page): Locator => page.locator('.rows .tries'),

  // The other views.
  refused: (page: Page): Locator => page.locator('.row-refused'),
  /** Why a request was refused, and what to do. */
  reasons: (page: Page): Locator => page.locator('.detail .sentences li'),
  /** The parts of the state. */
  cards: (page: Page): Locator => page.locator('.card'),
  /** The form that asks for a code. */
  gate: (page: Page): Locator => page.locator('.gate'),
  /** Markup that a payload must not become. CodeMirror has images of its own next to its widgets. */
  foreignMarkup: (page: Page): Locator => page.locator('main img:not(.cm-widgetBuffer), main script'),
} as const

/** Waits until what the inspector shows is up to date. */
export async function waitUntilLive(page: Page): Promise<void> {
  await page.locator('.connection-live').waitFor()
}

/** Scrolls the payload to its end, as the key does. */
export async function toEndOfPayload(page: Page): Promise<void> {
  await page.getByRole('textbox', { name: 'Payload' }).focus()
  await page.keyboard.press('Control+End')
}

/** What axe-core finds: each rule, of all or only some, with the elements that break it. */
export async function violations(page: Page, rules?: readonly string[]): Promise<readonly string[]> {
  // Through the debugger, as the page's policy allows no script of a test. Once for each document: it is half a megabyte.
  const isThere = await page.evaluate<boolean>('"findViolations" in globalThis')
  // A function as the value would be called.
  if (!isThere) await page.evaluate(`${AXE}${FIND_VIOLATIONS};0`)
  return page.evaluate<readonly string[]>(`findViolations(${JSON.stringify({ runOnly: rules })})`)
}

/** The elements that are cut off or scroll sideways. */
export function overflow(page: Page): Promise<readonly string[]> {
  return page.evaluate<readonly string[]>(FIND_OVERFLOW)
}

/** What in a row reaches into what follows it, or out of its row. */
export function overlaps(page: Page): Promise<readonly string[]> {
  return page.evaluate<readonly string[]>(`
    const parts = '.subject, .row-marks .icon, .mark-name, .mark-answer, .tries, .row-marks > :last-child:not(.mark)'
    ;[...document.querySelectorAll('.rows .row')].flatMap((row) => {
      const all = [...row.querySelectorAll(parts)]
      const boxes = [...all, row].map((part) => part.getBoundingClientRect())
      const limits = boxes.slice(1).map(({ left, right }, i) => (all[i + 1] ? left : right))
      return all.filter((_, i) => boxes[i].right > limits[i] + 0.5).map((part) => part.textContent)
    })
  `)
}

/** The lines of code that do not read well where they wrap. */
export function badBreaks(page: Page): Promise<readonly string[]> {
  return page.evaluate<readonly string[]>(FIND_BAD_BREAKS)
}

/** The image and the colour behind the buttons of the search in a payload. */
export function groundOfSearch(page: Page): Promise<readonly string[]> {
  return page.evaluate<readonly string[]>(`
    const button = document.querySelector('.code-view').shadowRoot.querySelector('.find button')
    const { backgroundImage, backgroundColor } = getComputedStyle(button)
    ;[backgroundImage, backgroundColor]
  `)
}

type Style = Readonly<Record<string, string>>
interface Drawn {
  readonly ownerDocument: { readonly defaultView: { getComputedStyle(element: Drawn): Style } }
}

/** A property of an element's style, as the browser draws it. */
export function styleOf(element: Locator, property: string): Promise<string | undefined> {
  return element.evaluate(
    (drawn: Drawn, name) => drawn.ownerDocument.defaultView.getComputedStyle(drawn)[name],
    property,
  )
}

/** Presses Tab until what has the focus contains this text. */
export async function tabTo(page: Page, text: string): Promise<void> {
  let focused: readonly string[] = []
  for (let presses = 0; presses < 100; presses++) {
    await page.keyboard.press('Tab')
    focused = await page.locator(':focus:not(body)').allTextContents()
    if (focused.some((content) => content.includes(text))) return
  }
  throw new Error(`no Tab reaches ${text}; the last one reached ${focused.join(', ')}`)
}

/**
 * Scrolls the list. Not with the mouse's wheel: what a busy Chromium gives its first turn to (an element that is about
 * to go, or the page itself) also takes those that follow within half a second of each other.
 */
export async function scrollList(page: Page, pixels: number): Promise<void> {
  await inspector.list(page).evaluate((pane, by) => pane.scrollBy(0, by), pixels)
}

/** Hides a tab, as another one in front of it does. Chromium without a window calls every tab visible. */
export async function setHidden(page: Page, isHidden: boolean): Promise<void> {
  await page.evaluate(`
    Object.defineProperty(document, 'hidden', { configurable: true, value: ${isHidden} })
    document.dispatchEvent(new Event('visibilitychange'))
  `)
}
