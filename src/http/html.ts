import { createHash } from 'node:crypto'
import { html, raw } from 'hono/html'

export interface Page {
  readonly title: string
  /** Made with `html` of hono/html, which escapes what is put into it. */
  readonly body: ReturnType<typeof html>
  /** Where its forms may be sent, and be redirected to from there: a CSP source list. Default: the page has none. */
  readonly formAction?: string
  /** CSS besides what every page has. */
  readonly style?: string
}

const STYLE = `
:root { color-scheme: light dark }
body { font: 1rem/1.6 system-ui, sans-serif; max-width: 36rem; margin: 12vh auto; padding: 0 1.5rem }
h1 { font-size: 1.4rem }
code { font: 0.9em ui-monospace, monospace }
button { font: inherit; padding: 0.4em 1.2em; margin-right: 0.5em }
`

/** A small page without script that loads nothing, is framed and kept by nobody, and tells no other site its address. */
export async function htmlPage(
  { title, body, formAction = "'none'", style = '' }: Page,
  status = 200,
): Promise<Response> {
  const css = STYLE + style
  const hash = createHash('sha256').update(css).digest('base64')
  const page = html`<!doctype html>
    <html lang="en">
      <meta charset="utf-8" />
      <meta name="viewport" content="width=device-width, initial-scale=1" />
      <title>${title}</title>
      ${raw(`<style>${css}</style>`)} ${body}
    </html> `
  return new Response(String(await page), {
    status,
    headers: {
      'Content-Type': 'text/html; charset=utf-8',
      'Content-Security-Policy': `default-src 'none'; style-src 'sha256-${hash}'; form-action ${formAction}; base-uri 'none'; frame-ancestors 'none'`,
      'X-Content-Type-Options': 'nosniff',
      'Referrer-Policy': 'no-referrer',
      'Cache-Control': 'no-store',
    },
  })
}
