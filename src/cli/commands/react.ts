import type { Command } from 'commander'
import type { ReactInput } from '../../providers/provider.js'
import type { ActionFlags } from '../action.js'
import type { Context } from '../context.js'
import { parseReaction } from '../reaction.js'
import { formatTarget, parseTarget, type Target } from '../target.js'
import { addUserOptions } from '../user-options.js'

/** Declares `relay react`. */
export function declareReact(command: Command, context: Context, run = runReact): void {
  command
    .description(
      `Reacts to an issue or pull request, or to the one comment whose web address is given, as a signed-in user, and
prints the reaction's name. Reacting twice in the same way is reacting once.

Examples:
  relay react octo/demo#1 +1
  relay react octo/demo#1 🚀
  relay react https://github.com/octo/demo/issues/1#issuecomment-5 heart`,
    )
    .argument('<target>', 'owner/repo#12, or the web address of an issue, pull request or comment')
    .argument('<reaction>', '+1, -1, laugh, confused, heart, hooray, rocket, eyes, or the emoji')
  command.option('--dry-run', 'say what would happen, and do nothing')
  addUserOptions(command).action((target: string, content: string, _: unknown, command: Command) =>
    run(context, target, content, command.optsWithGlobals()),
  )
}

async function runReact(context: Context, address: string, text: string, flags: ActionFlags): Promise<void> {
  const target = parseTarget(address)
  const content = parseReaction(text)
  const request = { ...subject(target), content }
  const { act } = await import('../action.js')
  await act(context, flags, {
    name: 'react',
    target,
    words: `react ${content} to ${described(target)}`,
    request,
    send: (api, options) => api.react(request, options),
    print(result, output, json) {
      if (json) output.object({ ...result })
      else output.result(result.content)
      if (!result.created) output.say('the same reaction of yours was there already')
    },
  })
}

function subject({ owner, repo, number: issueNumber, comment }: Target): Omit<ReactInput, 'content'> {
  const issue = { owner, repo, issueNumber }
  if (!comment) return issue
  return comment.kind === 'issue'
    ? { ...issue, commentId: comment.id }
    : { ...issue, reviewCommentId: comment.id }
}

function described(target: Target): string {
  const { comment } = target
  if (!comment) return formatTarget(target)
  return `${comment.kind === 'issue' ? 'comment' : 'review comment'} ${comment.id} on ${formatTarget(target)}`
}
