import { html } from 'hono/html'
import { htmlPage, type Page } from '../../http/html.js'
import type { Issue } from '../model.js'

const STYLE = `
a { color: var(--link); text-decoration: none }
a:hover { text-decoration: underline }
header { display: flex; gap: .6em; align-items: center; padding: 1rem 0; border-bottom: 1px solid var(--line); margin-bottom: 2rem }
header span { margin-left: auto; text-align: right }
h2 { font-size: 1.1rem; margin-top: 2.5rem }
table { border-collapse: collapse; width: 100% }
code, article > div { overflow-wrap: anywhere }
td { border-top: 1px solid var(--line); padding: .55em .6em .55em 0; vertical-align: top }
article { border: 1px solid var(--line); border-radius: .5rem }
article, .card { margin: 1rem 0; overflow: hidden }
article > p:first-child { margin: 0; padding: .5em 1em; background: var(--soft); border-bottom: 1px solid var(--line) }
article > div { padding: 1em; white-space: pre-wrap }
article:target { border-color: var(--link) }
td:first-child, td:last-child { white-space: nowrap }
table.plain td { white-space: normal }
.chips { padding: 0 1em; margin-top: 0 }
.chip { border: 1px solid var(--line); border-radius: 1em; padding: .1em .6em; margin-right: .3em }
.state { border-radius: 1em; padding: .15em .8em; color: #fff; background: var(--idle); font-size: .875rem; white-space: nowrap }
.open { background: var(--go) }
.merged { background: #8250df }
.closed { background: var(--stop) }
.joined { display: flex; gap: 1rem; justify-content: center; align-items: center; margin: 2rem 0 1rem }
.joined b { width: 3.5rem; height: 3.5rem; border-radius: 50%; display: grid; place-items: center; color: #fff; background: var(--idle); font-size: 1.4rem }
.joined b:last-child { background: var(--go) }
form { display: flex; flex-direction: row-reverse; gap: .75rem; margin-top: 1.5rem }
button { flex: 1; margin: 0; padding: .5em 1em; border: 1px solid var(--line); border-radius: .4rem; background: var(--soft); color: inherit; cursor: pointer }
form.entry { flex-direction: row }
form.list { display: block }
form.list label { display: block }
input:not([type]) { flex: 2; min-width: 0; font: inherit; padding: .4em .6em; border: 1px solid var(--line); border-radius: .4rem; background: transparent; color: inherit }
button.go { background: var(--go); color: #fff; font-weight: 600 }
button:focus-visible, a:focus-visible { outline: 2px solid var(--link); outline-offset: 2px }
`

/** Page of the sandbox's web site: a header that says what this is, and the content. */
export function sandboxPage(
  { body, ...page }: Page,
  status?: 200 | 400 | 404 | 422 | 429,
): Promise<Response> {
  const framed = html`<header>
      <a href="/"><strong>Sandbox</strong></a
      ><span class="soft">an emulated code host, nothing here is real</span>
    </header>
    <main>${body}</main>`
  return htmlPage({ ...page, style: STYLE, body: framed }, status)
}

/** Badge for the state: open, merged or locked. The sandbox cannot close an issue in any other way. */
export function stateBadge({ pull, locked }: Issue) {
  if (pull?.merge) return html`<span class="state merged">Merged</span>`
  return locked ? html`<span class="state">Locked</span>` : html`<span class="state open">Open</span>`
}
