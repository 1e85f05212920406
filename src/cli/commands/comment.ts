import type { Command } from 'commander'
import type { ActionFlags } from '../action.js'
import type { Context } from '../context.js'
import { printable } from '../output.js'
import { formatTarget, parseTarget } from '../target.js'
import { readText } from '../text.js'
import { addUserOptions } from '../user-options.js'

type CommentFlags = ActionFlags & { readonly bodyFile?: string }

/** Declares `relay comment`. */
export function declareComment(command: Command, context: Context, run = runComment): void {
  command
    .description(
      `Comments on an issue or pull request as a signed-in user, and prints the new comment's address.

Examples:
  relay comment octo/demo#1 "Looks good"
  git log -1 --stat | relay comment octo/demo#1 -
  relay comment https://github.com/octo/demo/pull/2 --body-file notes.md`,
    )
    .argument('<target>', 'owner/repo#12, or the web address of an issue, pull request or comment')
    .argument('[text]', 'the comment; - reads standard input')
    .option('--body-file <file>', 'take the comment from a file')
  command.option('--dry-run', 'say what would happen, and do nothing')
  addUserOptions(command).action((target: string, text: string | undefined, _: unknown, command: Command) =>
    run(context, target, text, command.optsWithGlobals()),
  )
}

async function runComment(
  context: Context,
  address: string,
  argument: string | undefined,
  flags: CommentFlags,
): Promise<void> {
  const target = parseTarget(address)
  const body = await readText(context, { argument, file: flags.bodyFile })
  const { owner, repo, number: issueNumber } = target
  const request = { owner, repo, issueNumber, body }
  const { act } = await import('../action.js')
  await act(context, flags, {
    name: 'comment',
    target,
    words: `comment on ${formatTarget(target)} (${size(body)})`,
    request,
    send: (api, options) => api.comment(request, options),
    print: (result, output, json) =>
      json ? output.object({ ...result }) : output.result(printable(result.url)),
  })
}

function size(text: string): string {
  const bytes = Buffer.byteLength(text)
  return bytes === 1 ? '1 byte' : `${bytes} bytes`
}
