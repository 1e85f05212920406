import { html } from 'hono/html'
import type { Comment, Issue, Pull, ReviewComment, Subject } from '../model.js'
import type { Reaction } from '../../codehost/host.js'
import type { View } from '../resources/view.js'
import { sandboxPage, stateBadge } from './layout.js'

/** Number of newest comments shown: a load test leaves thousands. */
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

/** Page of an issue or pull request: comments, reactions and merge state. */
export function conversationPage(view: View, issue: Issue): Promise<Response> {
  const comments = view.state.commentsOn(issue)
  const reviews = view.state.reviewComments.filter(
    ({ repo, issueNumber }) => repo === issue.repo && issueNumber === issue.number,
  )
  const hidden = comments.length - SHOWN
  return sandboxPage({
    title: `${issue.title} · ${issue.repo}#${issue.number}`,
    body: html`<h1>${issue.title} <span class="soft">#${issue.number}</span></h1>
      <p>${stateBadge(issue)} <a href="/${issue.repo}">${issue.repo}</a></p>
      ${entry(view, `issue-${issue.id}`, issue, { kind: 'issue', id: issue.id })}
      ${reviews.map((review) => reviewEntry(view, review))}
      ${hidden > 0 ? html`<p class="soft">${hidden} older comments</p>` : ''}
      ${comments.slice(-SHOWN).map((comment) => commentEntry(view, comment))}
      ${issue.pull ? mergeBox(issue.pull) : ''}`,
  })
}

function commentEntry(view: View, comment: Comment) {
  return entry(view, `issuecomment-${comment.id}`, comment, { kind: 'comment', id: comment.id })
}

function reviewEntry(view: View, review: ReviewComment) {
  return entry(
    view,
    `discussion_r${review.id}`,
    review,
    { kind: 'review_comment', id: review.id },
    review.path,
  )
}

/** A description, comment or review comment. All its text comes from outside, and `html` escapes it. */
function entry(
  view: View,
  anchor: string,
  { user, body, createdAt }: Pick<Comment, 'user' | 'body' | 'createdAt'>,
  subject: Subject,
  path?: string,
) {
  return html`<article id="${anchor}">
    <p>
      <strong>${user}</strong>
      <small>${path ? html`on <code>${path}</code>, ` : ''}<a href="#${anchor}">${createdAt}</a></small>
    </p>
    <div>${body}</div>
    ${reactionChips(view, subject)}
  </article>`
}

function reactionChips(view: View, subject: Subject) {
  const reactions = view.state.reactionsTo(subject)
  if (reactions.length === 0) return ''
  return html`<p class="chips">
    ${reactions.map(({ content, user }) => html`<span class="chip" title="${content} by ${user}">${EMOJI[content]} ${user}</span>`)}
  </p>`
}

function mergeBox({ mergeable, merge, head, base }: Pull) {
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
