import { createHash } from 'node:crypto'
import { html, raw } from 'hono/html'

export interface Page {
  readonly title: string
  /** Content made with `html` of hono/html, which escapes the inserted values. */
  readonly body: ReturnType<typeof html>
  /** Addresses to which its forms may be sent and then redirected: a CSP source list. Default: none. */
  readonly formAction?: string
  /** CSS in addition to that of every page. */
  readonly style?: string
}

/** CSS of every page, light and dark. White text on --go, --stop and --idle has a contrast of at least 4.5. */
const STYLE = `
:root { color-scheme: light dark; --line: #8885; --soft: #8881; --go: #1f883d; --stop: #cf222e; --idle: #57606a; --link: #0969da }
@media (prefers-color-scheme: dark) { :root { --go: #238636; --link: #4493f8 } }
body { font: 1rem/1.6 system-ui, sans-serif; max-width: 46rem; margin: 0 auto; padding: 0 1.5rem 4rem; overflow-wrap: break-word }
h1 { font-size: 1.4rem; line-height: 1.3 }
code { font: 0.9em ui-monospace, monospace }
small, .soft { font-size: .875rem; opacity: .8 }
.card { border: 1px solid var(--line); border-radius: .5rem; padding: 1.5rem }
.card > :first-child { margin-top: 0 }
.narrow { max-width: 28rem; margin: 0 auto }
.center { text-align: center }
button { font: inherit; padding: .4em 1.2em }
`

/** Renders a small page. It loads nothing, cannot be framed or cached, and sends no referrer. */
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
