import { createHash } from 'node:crypto'
import { html } from 'hono/html'
import { describe, expect, it } from 'vitest'
import { htmlPage } from '../../src/http/html.js'

describe('a page', () => {
  it('may run and load nothing but its own style, allowed by hash', async () => {
    const response = await htmlPage({ title: 'A <title>', body: html`<p>${'<script>'}</p>` })
    const text = await response.text()
    const [, style = ''] = /<style>([^]*)<\/style>/.exec(text) ?? []
    const hash = createHash('sha256').update(style).digest('base64')
    expect(Object.fromEntries(response.headers)).toEqual({
      'cache-control': 'no-store',
      'content-security-policy': `default-src 'none'; style-src 'sha256-${hash}'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'`,
      'content-type': 'text/html; charset=utf-8',
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
    })
    expect(text).toContain('<title>A &lt;title&gt;</title>')
    expect(text).toContain('<p>&lt;script&gt;</p>')
  })

  it('can allow a form action and have another status', async () => {
    const response = await htmlPage(
      { title: 't', body: html``, formAction: "'self' http://127.0.0.1:8787" },
      400,
    )
    expect(response.status).toBe(400)
    expect(response.headers.get('content-security-policy')).toContain(
      "; form-action 'self' http://127.0.0.1:8787; ",
    )
  })
})
