import type { ReactInput } from '../../../providers/provider.js'
import type { Context } from '../../context.js'
import { act, type ActionFlags } from '../../session/action.js'
import { formatTarget, parseTarget, type Target } from '../../session/target.js'
import { parseReaction } from './reaction.js'

export async function runReact(
  context: Context,
  flags: ActionFlags,
  address: string,
  text: string,
): Promise<void> {
  const target = parseTarget(address)
  const content = parseReaction(text)
  const request = { ...subject(target), content }
  await act(context, flags, {
    name: 'react',
    target,
    description: `react ${content} to ${describe(target)}`,
    request,
    send: (api, options) => api.react(request, options),
    describe: ({ content }) => content,
    sentence: ({ content, created }) => (created ? `Reacted ${content} to ${describe(target)}` : undefined),
    note: ({ created }) => (created ? undefined : 'you had already added this reaction'),
  })
}

function subject({ owner, repo, number: issueNumber, comment }: Target): Omit<ReactInput, 'content'> {
  const issue = { owner, repo, issueNumber }
  if (!comment) return issue
  return comment.kind === 'issue'
    ? { ...issue, commentId: comment.id }
    : { ...issue, reviewCommentId: comment.id }
}

function describe(target: Target): string {
  const { comment } = target
  if (!comment) return formatTarget(target)
  return `${comment.kind === 'issue' ? 'comment' : 'review comment'} ${comment.id} on ${formatTarget(target)}`
}
