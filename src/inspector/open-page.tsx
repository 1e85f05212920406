import { html } from 'hono/html'
import { type AssetPaths, renderDocument } from './document.js'

/** Where the browser posts a one-time code. */
export const OPEN_PATH = '/inspect/open'
/** The script of {@link openedPage}. */
export const SCRIPT_PATH = '/inspect/open.js'
/** Where the page's script finds the key in `sessionStorage`. */
const KEY_ITEM = 'relay-inspect-key'

interface AccessPage {
  /** Why the last code did not open it. */
  readonly problem?: string
  /** What to show then: the number of an entry, or `last`. */
  readonly entry?: string | undefined
}

/** Says how the inspector is opened, with a form for the code that `relay inspect --no-browser` prints. */
export function accessPage(assets: AssetPaths, { problem, entry }: AccessPage = {}): Promise<string> {
  const body = (
    <main class="gate">
      <h1>Open the inspector</h1>
      {problem === undefined ? null : (
        <p class="error-text" role="alert">
          {problem}
        </p>
      )}
      <p>
        Run <code>relay inspect</code> in a terminal: it opens this page in your browser.
      </p>
      <p>
        On another machine, or in another browser, run <code>relay inspect --no-browser</code> and enter the
        code that it prints. A code works once, for 5 minutes.
      </p>
      <form class="line-form" method="post" action={OPEN_PATH}>
        <label for="code">Code</label>
        <input
          id="code"
          name="code"
          required
          autofocus
          autocomplete="off"
          autocapitalize="off"
          spellcheck={false}
          placeholder="xxxx-xxxx-xxxx-xxxx"
        />
        {entry === undefined ? null : <input type="hidden" name="entry" value={entry} />}
        <button class="button button-main">Open</button>
      </form>
    </main>
  )
  return renderDocument('Open the inspector', body, { style: assets.path('style.css') })
}

/**
 * The page that follows a right code: its script keeps the key for changes in this tab and opens `to`. Not a redirect: a
 * browser sends a Strict cookie to no page of a chain of redirects that another site began (RFC 6265bis section 5.2). Without
 * scripts the inspector opens too, and only reads.
 */
export function openedPage(assets: AssetPaths, key: string, to: string): Promise<string> {
  const body = (
    <main class="gate">
      <p>Opening the inspector …</p>
      <p>
        <a href={to}>Go there</a>
      </p>
      {
        // hono/jsx would move it out of noscript, to the head.
        html`<noscript><meta http-equiv="refresh" content="0; url=${to}" /></noscript>`
      }
      <script src={SCRIPT_PATH} data-key={key} data-to={to} />
    </main>
  )
  return renderDocument('Opening', body, { style: assets.path('style.css') })
}

export const OPENED_SCRIPT = `const { key, to } = document.currentScript.dataset
try { sessionStorage.setItem('${KEY_ITEM}', key) } catch {}
location.replace(to)
`
