import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { html } from 'hono/html'
import { type CommandPlace, commandsOf } from '../base/command-line.js'

/** A file that the browser loads, read into memory once. */
export interface StaticFile {
  readonly type: string
  readonly body: Uint8Array<ArrayBuffer>
  /** Compression of `body`. Browsers accept it even if they do not ask for it (RFC 9110 section 12.5.3). */
  readonly encoding?: 'gzip'
  /** Entity tag, for a 304 to a browser that has this version already, which takes a millisecond on this machine. */
  readonly etag: string
}

const ASSETS = '/inspect/assets/'
const TYPES = {
  'app.js.gz': 'text/javascript; charset=utf-8',
  // CodeMirror, loaded with the first delivery.
  'code.js.gz': 'text/javascript; charset=utf-8',
  'app.css.gz': 'text/css; charset=utf-8',
  'LICENSES.txt': 'text/plain; charset=utf-8',
} as const

/**
 * Reads the files that `npm run build` writes to `dist/inspect`. Without them, the page says that the inspector is not
 * built. `page` is the response at every address. `preloading` is for a browser with a session: it also fetches the
 * first list while the script loads. `missing` is for all other addresses. The only data in them is the profile's name,
 * for the commands in its pages.
 */
export async function openShell(place: CommandPlace) {
  const root = path.dirname(createRequire(import.meta.url).resolve('webhook-relay/package.json'))
  const assets = new Map<string, StaticFile>()
  for (const [name, type] of Object.entries(TYPES)) {
    try {
      const file = staticFile(type, readFileSync(path.join(root, 'dist', 'inspect', name)))
      const isPacked = name.endsWith('.gz')
      assets.set(ASSETS + name.replace('.gz', ''), isPacked ? { ...file, encoding: 'gzip' } : file)
    } catch {
      // The file was not built.
    }
  }
  const missing = await pageOf(STYLE, MISSING, 'No such page')
  const application = applicationOf(place)
  if (!assets.has(`${ASSETS}app.js`)) {
    const page = await pageOf('', NOT_BUILT)
    return { page, preloading: page, missing, assets }
  }
  const preloading = await pageOf(html`${PRELOAD}${LOADING}`, application)
  return { page: await pageOf(LOADING, application), preloading, missing, assets }
}

function staticFile(type: string, bytes: Uint8Array): StaticFile {
  const body = new Uint8Array(bytes)
  return { type, body, etag: `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"` }
}

type Markup = ReturnType<typeof html>

/** Preloads exactly the address that the list requests first. */
const PRELOAD = html`<link
  rel="preload"
  as="fetch"
  crossorigin="anonymous"
  href="/inspect/api/deliveries?limit=50"
/>`

const STYLE = html`<link rel="stylesheet" href="${ASSETS}app.css" />`

const LOADING = html`${STYLE}
  <script type="module" src="${ASSETS}app.js"></script>`

function applicationOf(place: CommandPlace): Markup {
  const [log, show] = ['log', 'show last'].map(commandsOf(place))
  return html`<div id="app" data-place="${JSON.stringify(place)}"></div>
    <noscript
      >The inspector needs JavaScript. In a terminal, ${log} and ${show} have the same deliveries.</noscript
    >`
}

const NOT_BUILT = html`<h1>The inspector is not built</h1>
  <p>Run <code>npm run build</code> in the folder of relay, and start relay again.</p>`

const MISSING = html`<main class="empty">
  <h1 class="empty-title">There is no such page</h1>
  <p><a href="/inspect/">To the deliveries</a></p>
</main>`

async function pageOf(head: Markup | string, body: Markup, title = 'Deliveries'): Promise<StaticFile> {
  const page = html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>${title} · relay</title>
        <link rel="icon" href="data:," />
        ${head}
      </head>
      <body>
        ${body}
      </body>
    </html> `
  return staticFile('text/html; charset=utf-8', Buffer.from(String(await page)))
}
