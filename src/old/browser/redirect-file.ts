import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'

/** What a browser is to post when it opens the file. */
export interface Redirect {
  readonly url: string
  readonly fields: Readonly<Record<string, string>>
}

export interface RedirectFile extends Disposable {
  /** Address of the file. */
  readonly url: string
}

/**
 * Writes a page that posts a form to an address as soon as it is opened. Only this user can read it (0600, in a folder of its own
 * with 0700), and only its path stands in a process list. Disposing of it removes it.
 */
export function writeRedirectFile(home: string, { url, fields }: Redirect): RedirectFile {
  mkdirSync(home, { recursive: true, mode: 0o700 })
  const folder = mkdtempSync(path.join(home, '.open-'))
  const file = path.join(folder, 'relay.html')
  const dispose = (): void => rmSync(folder, { recursive: true, force: true })
  try {
    writeFileSync(file, page(url, fields), { mode: 0o600, flag: 'wx' })
  } catch (error) {
    dispose()
    throw error
  }
  return { url: pathToFileURL(file).href, [Symbol.dispose]: dispose }
}

function page(url: string, fields: Redirect['fields']): string {
  const inputs = Object.entries(fields).map(
    ([name, value]) => `<input type="hidden" name="${escaped(name)}" value="${escaped(value)}">`,
  )
  return `<!doctype html>
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<title>relay</title>
<form method="post" action="${escaped(url)}">
${inputs.join('\n')}
<button>Open the inspector</button>
</form>
<script>document.forms[0].submit()</script>
`
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;')
}
