import { Hono } from 'hono'
import { html } from 'hono/html'
import type { Reaction } from '../codehost/actions.js'
import type { HttpEnv } from '../http/body.js'
import { htmlPage, type Page } from '../http/html.js'
import { webPath } from './payloads.js'
import { findRepo, type SandboxContext } from './host.js'
import { requireFound } from './protocol.js'
import {
  type StoredComment,
  DEMO,
  type Issue,
  type Pull,
  type StoredRepo,
  type SandboxState,
  type ReactionSubject,
} from './state.js'

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
form { display: flex; flex-direction: row-reverse; gap: .75rem; margin-top: 1.5rem }
button { flex: 1; margin: 0; padding: .5em 1em; border: 1px solid var(--line); border-radius: .4rem; background: var(--soft); color: inherit; cursor: pointer }
form.entry { flex-direction: row }
form.list { flex-direction: column }
input:not([type]) { flex: 2; min-width: 0; font: inherit; padding: .4em .6em; border: 1px solid var(--line); border-radius: .4rem; background: transparent; color: inherit }
button.go { background: var(--go); color: #fff; font-weight: 600 }
button:focus-visible, a:focus-visible { outline: 2px solid var(--link); outline-offset: 2px }
`

/** Number of newest comments on a page. A load test leaves thousands. */
const SHOWN = 100

const EMOJI: Readonly<Record<Reaction, string>> = {
  '+1': '👍',
  '-1': '👎',
  laugh: '😄',
  confused: '😕',
  heart: '❤️',
  hooray: '🎉',
  rocket: '🚀',
  eyes: '👀',
}

export type Html = ReturnType<typeof html>

/** Page of the sandbox's web site: a header that identifies the sandbox, and the content. */
export function sandboxPage({ body, ...page }: Page, status = 200): Promise<Response> {
  const framed = html`<header>
      <a href="/"><strong>Sandbox</strong></a
      ><span class="soft">an emulated code host, nothing here is real</span>
    </header>
    <main>${body}</main>`
  return htmlPage({ ...page, style: STYLE, body: framed }, status)
}

/** Page with a title and one sentence of explanation. */
export function notePage(title: string, text: string, status = 200): Promise<Response> {
  const body = html`<h1>${title}</h1>
    <p>${text}</p>`
  return sandboxPage({ title, body }, status)
}

/** Table of names and values. */
export function plainTable(rows: readonly (readonly [name: string | Html, value: string | Html])[]): Html {
  return html`<table class="plain">
    ${rows.map(
      ([name, value]) =>
        html`<tr>
          <td>${name}</td>
          <td>${value}</td>
        </tr>`,
    )}
  </table>`
}

/** Web site that shows the sandbox's contents. Readable without sign-in, like a public repository. */
export function sitePages({ state, payloads }: SandboxContext): Hono<HttpEnv> {
  return new Hono<HttpEnv>()
    .get('/', () => frontPage(state, payloads.web, payloads.api))
    .get('/:owner/:repo', (c) => {
      const repo = findRepo(c, state)
      const body = html`<h1>${repo.fullName}</h1>
        <p>${repo.description}</p>
        ${repo.hasIssues ? issueTable(state, repo) : ''}`
      return sandboxPage({ title: repo.fullName, body })
    })
    .get('/:owner/:repo/:kind{issues|pull}/:number{\\d+}', async (c) => {
      const { kind, number } = c.req.param()
      const { fullName, hasIssues } = findRepo(c, state)
      const issue = requireFound(hasIssues ? state.issue(fullName, Number(number)) : undefined)
      return kind === (issue.pull ? 'pull' : 'issues')
        ? conversationPage(state, issue)
        : c.redirect(webPath(issue))
    })
}

/** The demo repository, the repositories with faults, and the addresses for programs. */
function frontPage(state: SandboxState, web: string, api: string): Promise<Response> {
  const others = state.repos.filter((repo) => repo.fullName !== DEMO)
  const demo = state.repos.filter((repo) => repo.fullName === DEMO)
  return sandboxPage({
    title: 'Sandbox',
    body: html`<h1>Try it here first</h1>
      <p>
        Sign in, then comment, react and merge as often as you like: it all lives in memory and is gone when
        the sandbox stops. Each comment and each merge sends a signed webhook to the relay.
      </p>
      <h2>${DEMO}</h2>
      ${demo.map((repo) => issueTable(state, repo))}
      <h2>When things go wrong</h2>
      ${plainTable(
        others.map(({ fullName, description }) => [
          html`<a href="/${fullName}">${fullName}</a>`,
          description,
        ]),
      )}
      <h2>For programs</h2>
      ${plainTable([
        ['REST API', html`<code>${api}</code>`],
        ['Sign-in by device', html`<a href="/login/device">Enter a code</a>`],
        ['Personal access token', html`<a href="/settings/tokens/new">Make one</a>`],
        ['OAuth', html`<code>${web}/login/oauth</code>`],
      ])}`,
  })
}

function issueTable(state: SandboxState, { fullName }: StoredRepo): Html {
  const issues = state.issues.filter(({ repo }) => repo === fullName)
  const comments = (count: number): string => (count === 1 ? '1 comment' : `${count} comments`)
  return html`<table>
    ${issues.map(
      (issue) =>
        html`<tr>
          <td>#${issue.number}</td>
          <td>
            <a href="${webPath(issue)}">${issue.title}</a><br />
            <small
              >${issue.pull ? 'Pull request' : 'Issue'} · ${comments(issue.commentCount)} ·
              ${issue.body}</small
            >
          </td>
          <td>${stateBadge(issue)}</td>
        </tr>`,
    )}
  </table>`
}

/** Comments, reactions and merge state of an issue or pull request. */
function conversationPage(state: SandboxState, issue: Issue): Promise<Response> {
  const comments = state.commentsOn(issue)
  const hidden = comments.length - SHOWN
  const reviews = state.reviewComments.filter(
    ({ repo, issueNumber }) => repo === issue.repo && issueNumber === issue.number,
  )
  return sandboxPage({
    title: `${issue.title} · ${issue.repo}#${issue.number}`,
    body: html`<h1>${issue.title} <span class="soft">#${issue.number}</span></h1>
      <p>${stateBadge(issue)} <a href="/${issue.repo}">${issue.repo}</a></p>
      ${entry(state, `issue-${issue.id}`, issue, { kind: 'issue', id: issue.id })}
      ${reviews.map((review) => {
        const { id, path } = review
        return entry(state, `discussion_r${id}`, review, { kind: 'review_comment', id }, path)
      })}
      ${hidden > 0 ? html`<p class="soft">${hidden} older comments</p>` : ''}
      ${comments.slice(-SHOWN).map((comment) => {
        const { id } = comment
        return entry(state, `issuecomment-${id}`, comment, { kind: 'comment', id })
      })}
      ${issue.pull ? mergeBox(issue.pull) : ''}`,
  })
}

/** A description, comment or review comment. All its text comes from outside, and `html` escapes it. */
function entry(
  state: SandboxState,
  anchor: string,
  { user, body, createdAt }: Pick<StoredComment, 'user' | 'body' | 'createdAt'>,
  subject: ReactionSubject,
  path?: string,
): Html {
  const reactions = state.reactionsTo(subject)
  const chips = reactions.map(
    ({ content, user }) =>
      html`<span class="chip" title="${content} by ${user}">${EMOJI[content]} ${user}</span>`,
  )
  return html`<article id="${anchor}">
    <p>
      <strong>${user}</strong>
      <small>${path ? html`on <code>${path}</code>, ` : ''}<a href="#${anchor}">${createdAt}</a></small>
    </p>
    <div>${body}</div>
    ${chips.length > 0 ? html`<p class="chips">${chips}</p>` : ''}
  </article>`
}

function mergeBox({ mergeable, merge, head, base }: Pull): Html {
  if (merge) {
    return html`<section class="card">
      <strong>${merge.user}</strong> merged <code>${head.ref}</code> into <code>${base.ref}</code> as
      <code>${merge.sha.slice(0, 7)}</code> <small>${merge.mergedAt}, method ${merge.method}</small>
    </section>`
  }
  return html`<section class="card">
    <code>${head.ref}</code> (<code>${head.sha.slice(0, 7)}</code>)
    ${mergeable ? 'has no conflicts with' : html`<strong>conflicts with</strong>`}
    <code>${base.ref}</code>${mergeable ? ' and can be merged.' : ' and cannot be merged.'}
  </section>`
}

/** Badge for the state of an issue, which can be closed only by merging its pull request. */
function stateBadge({ pull, locked }: Issue): Html {
  if (pull?.merge) return html`<span class="state merged">Merged</span>`
  return locked ? html`<span class="state">Locked</span>` : html`<span class="state open">Open</span>`
}
