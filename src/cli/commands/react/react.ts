import { RelayError } from '../../../base/errors.js'
import type { Taken } from '../../../client/client.js'
import { REACTIONS } from '../../../codehost/host.js'
import type { Context } from '../../context.js'
import { act, type ActionFlags } from '../../session/action.js'
import { readOperands, readSubject } from '../../session/subject.js'
import { formatTarget, type Target } from '../../session/target.js'
import { parseReaction } from './reaction.js'

export async function runReact(
  context: Context,
  flags: ActionFlags,
  first?: string,
  second?: string,
): Promise<void> {
  const operands = readOperands(flags, [first, second], 1)
  if (operands.other === undefined)
    throw new RelayError('usage', `No reaction given. Give one of ${REACTIONS.join(', ')}, or the emoji`)
  const content = parseReaction(operands.other)
  const find = await readSubject(context, flags, operands)
  await act(context, flags, find, (target) => {
    const request = { ...subject(target), content }
    return {
      name: 'react',
      description: `react ${content} to ${describe(target)}`,
      request,
      send: ({ api }, options) => api.react(request, options),
      describe: ({ content }) => content,
      sentence: ({ content, created }) => (created ? `Reacted ${content} to ${describe(target)}` : undefined),
      note: ({ created }) => (created ? undefined : 'you had already added this reaction'),
    }
  })
}

function subject({ owner, repo, number: issueNumber, comment }: Target): Omit<Taken<'react'>, 'content'> {
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
