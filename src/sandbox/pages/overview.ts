import { html } from 'hono/html'
import type { Issue, Repo } from '../model.js'
import { webPath } from '../resources/issue.js'
import type { View } from '../resources/view.js'
import { DEMO } from '../seed.js'
import { sandboxPage, stateBadge } from './layout.js'

/** Front page: the demo repository, the repositories with faults, and the addresses for programs. */
export function overviewPage(view: View): Promise<Response> {
  const others = view.state.repos.filter((repo) => repo.fullName !== DEMO)
  return sandboxPage({
    title: 'Sandbox',
    body: html`<h1>Try it here first</h1>
      <p>
        Sign in, then comment, react and merge as often as you like: it all lives in memory and is gone when
        the sandbox stops. Each comment and each merge sends a signed webhook to the relay.
      </p>
      <h2>${DEMO}</h2>
      ${issueTable(view, view.repo(DEMO))}
      <h2>When things go wrong</h2>
      <table class="plain">
        ${others.map(({ fullName, description }) =>
          plainRow(html`<a href="/${fullName}">${fullName}</a>`, description),
        )}
      </table>
      <h2>For programs</h2>
      <table class="plain">
        ${plainRow('REST API', html`<code>${view.api}</code>`)}
        ${plainRow('Sign-in by device', html`<a href="/login/device">Enter a code</a>`)}
        ${plainRow('Personal access token', html`<a href="/settings/tokens/new">Make one</a>`)}
        ${plainRow('OAuth', html`<code>${view.web}/login/oauth</code>`)}
      </table>`,
  })
}

/** Page of a repository: its issues and pull requests. */
export function repositoryPage(view: View, repo: Repo): Promise<Response> {
  return sandboxPage({
    title: repo.fullName,
    body: html`<h1>${repo.fullName}</h1>
      <p>${repo.description}</p>
      ${repo.hasIssues ? issueTable(view, repo) : ''}`,
  })
}

function plainRow(name: unknown, value: unknown) {
  return html`<tr>
    <td>${name}</td>
    <td>${value}</td>
  </tr>`
}

function issueTable(view: View, { fullName }: Repo) {
  const row = (issue: Issue) =>
    html`<tr>
      <td>#${issue.number}</td>
      <td>
        <a href="${webPath(issue)}">${issue.title}</a><br />
        <small
          >${issue.pull ? 'Pull request' : 'Issue'} · ${comments(issue.commentCount)} · ${issue.body}</small
        >
      </td>
      <td>${stateBadge(issue)}</td>
    </tr>`
  return html`<table>
    ${view.state.issues.filter(({ repo }) => repo === fullName).map(row)}
  </table>`
}

function comments(count: number): string {
  return count === 1 ? '1 comment' : `${count} comments`
}
