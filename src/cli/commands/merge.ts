import { Option, type Command } from 'commander'
import { RelayError } from '../../base/errors.js'
import { MERGE_METHODS, type MergeMethod } from '../../providers/provider.js'
import type { ActionFlags } from '../action.js'
import type { Context } from '../context.js'
import { printable } from '../output.js'
import { formatTarget, parseTarget, type Target } from '../target.js'
import { addUserOptions } from '../user-options.js'

type MergeFlags = ActionFlags & {
  readonly method?: MergeMethod
  readonly title?: string
  readonly message?: string
  readonly matchHead?: string
}

/** Declares `relay merge`. */
export function declareMerge(command: Command, context: Context, run = runMerge): void {
  command
    .description(
      `Merges a pull request as a signed-in user, and prints the merge commit's id. Where the code host
merges it later, once checks have passed, that is said instead.

Examples:
  relay merge https://github.com/octo/demo/pull/2
  relay merge octo/demo#2 --method squash --title "Add a greeting (#2)"
  relay merge octo/demo#2 --match-head "$(git rev-parse HEAD)"`,
    )
    .argument('<target>', 'owner/repo#12, or the web address of a pull request')
    .addOption(new Option('--method <method>', 'how to merge').choices(MERGE_METHODS))
    .option('--title <text>', "the merge commit's title")
    .option('--message <text>', "the merge commit's message")
    .option('--match-head <sha>', 'merge only if this is the head: the whole commit id')
  command.option('--dry-run', 'say what would happen, and do nothing')
  addUserOptions(command).action((target: string, _: unknown, command: Command) =>
    run(context, target, command.optsWithGlobals()),
  )
}

async function runMerge(context: Context, address: string, flags: MergeFlags): Promise<void> {
  const target = parsePull(address)
  const { owner, repo, number: pullNumber } = target
  const { method, title, message } = flags
  const sha = checkSha(flags.matchHead)
  const request = { owner, repo, pullNumber, method, title, message, sha }
  const { act } = await import('../action.js')
  await act(context, flags, {
    name: 'merge',
    target,
    words: `merge ${formatTarget(target)}${method ? ` (${method})` : ''}${sha ? ` if its head is ${sha}` : ''}`,
    request,
    send: (api, options) => api.merge(request, options),
    print({ merged, sha }, output, json) {
      if (json) output.object({ merged, sha })
      else if (merged) output.result(printable(sha))
      if (!merged)
        output.say(
          `${formatTarget(target)} is not merged yet: the code host does it when its checks have passed`,
        )
    },
  })
}

/** @throws RelayError `usage`. */
function parsePull(address: string): Target {
  const target = parseTarget(address)
  if (target.kind !== 'issue') return target
  throw new RelayError(
    'usage',
    `${JSON.stringify(address)} is the address of an issue: if it is a pull request, give ${formatTarget(target)}`,
  )
}

/** A shortened id would match no head, and read like a changed one. */
function checkSha(sha: string | undefined): string | undefined {
  if (sha === undefined || /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/i.test(sha)) return sha
  throw new RelayError('usage', '--match-head: must be a whole commit id of 40 or 64 hexadecimal digits')
}
