import { createHash } from 'node:crypto'
import { html, raw } from 'hono/html'

export interface Page {
  readonly title: string
  /** Made with `html` of hono/html, which escapes what is put into it. */
  readonly body: ReturnType<typeof html>
  /** Where its forms may be sent, and be redirected to from there: a CSP source list. Default: the page has none. */
  readonly formAction?: string
}

const STYLE = `
:root { color-scheme: light dark }
body { font: 1rem/1.6 system-ui, sans-serif; max-width: 36rem; margin: 12vh auto; padding: 0 1.5rem }
h1 { font-size: 1.4rem }
code { font: 0.9em ui-monospace, monospace }
button { font: inherit; padding: 0.4em 1.2em; margin-right: 0.5em }
`

/** One piece, since a template may be reformatted and the hash must fit to the byte. */
const STYLE_TAG = raw(`<style>${STYLE}</style>`)
const STYLE_HASH = createHash('sha256').update(STYLE).digest('base64')

/** A small page without script that loads nothing, is framed and kept by nobody, and tells no other site its address. */
export async function htmlPage(
  { title, body, formAction = "'none'" }: Page,
  status = 200,
): Promise<Response> {
  const page = html`<!doctype html>
    <html lang="en">
      <meta charset="utf-8" />
      <meta name="viewport" content="width=device-width, initial-scale=1" />
      <title>${title}</title>
      ${STYLE_TAG} ${body}
    </html> `
  return new Response(String(await page), {
    status,
    headers: {
      'Content-Type': 'text/html; charset=utf-8',
      'Content-Security-Policy': `default-src 'none'; style-src 'sha256-${STYLE_HASH}'; form-action ${formAction}; base-uri 'none'; frame-ancestors 'none'`,
      'X-Content-Type-Options': 'nosniff',
      'Referrer-Policy': 'no-referrer',
      'Cache-Control': 'no-store',
    },
  })
}
