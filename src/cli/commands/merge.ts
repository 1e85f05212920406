import { MERGE_METHODS, type MergeMethod } from '../../codehost/actions.js'
import { type MergeResult, type MergeOptions, type MergeWatch } from '../../codehost/host.js'
import { RelayError } from '../../base/errors.js'
import { requireGreen } from '../../codehost/pipelines.js'
import { ACTION, DRY_RUN, FROM } from '../options.js'
import { define, type Shell } from '../command.js'
import { ACTED, performAction, type Action, type ActionFlags, readOperands, readTarget } from '../action.js'
import { marked, own } from '../output/outside.js'
import { formatTarget, type ActionTarget } from '../target.js'

export const mergeCommand = define({
  ...ACTION,
  description: `Merges a pull request as a signed-in user, and prints the id of the merge commit, or that the code host will merge it
once its checks have passed. With --if-green, merges only if every check and status of the head has succeeded, was skipped or
is neutral, and only that head. A head without any is not merged. Tries again for up to 15 s, with the same head, if the base branch
moved, or the code host is still checking whether it can be merged.`,
  examples: `relay merge https://github.com/octo/demo/pull/2
relay merge octo/demo#2 --method squash --title "Add a greeting (#2)"
relay merge octo/demo#2 --match-head "$(git rev-parse HEAD)"
git push && relay wait check_suite.completed --json | relay merge --from - --if-green`,
  args: [['[target]', 'owner/repo#12, or the web address of a pull request; omit with --from']],
  options: [
    FROM,
    [
      '--method <method>',
      'merge method',
      { choices: MERGE_METHODS, defaultText: "merge; at GitLab, the project's" },
    ],
    ['--title <text>', 'title of the merge commit'],
    ['--message <text>', 'message of the merge commit'],
    ['--match-head <sha>', 'merge only if the head is this commit (full id)'],
    ['--if-green', 'merge only if all checks and statuses of the head have succeeded'],
    ['--auto', 'let the code host merge once the checks have succeeded (Gitea, GitLab)'],
    DRY_RUN,
  ],
  exits: [[3, 'with --if-green: checks failed, have not finished, or are missing'], ...ACTION.exits],
  run: runMerge,
  ...ACTED,
})

interface MergeInput extends ActionFlags {
  readonly method?: MergeMethod
  readonly title?: string
  readonly message?: string
  readonly matchHead?: string
  readonly ifGreen?: boolean
  readonly auto?: boolean
}

async function* runMerge(shell: Shell, flags: MergeInput) {
  const { method, title, message, ifGreen, auto, matchHead: sha } = flags
  // Rejected, since a shortened id matches no head, and the error would look like a changed head.
  if (sha !== undefined && !/^(?:[0-9a-f]{40}|[0-9a-f]{64})$/i.test(sha))
    throw new RelayError('usage', '--match-head: must be a full commit id of 40 or 64 hexadecimal digits')
  const [named] = readOperands(flags, [flags.target], 0)
  yield* performAction(shell, flags, 'merge', await readTarget(shell, flags.from, named), (target, host) => {
    const name = formatTarget(target)
    const isPull = target.kind === 'pull'
    if (host.separateNumbers && !isPull)
      throw new RelayError(
        'usage',
        `${name} is an issue. Give the merge request as ${name.replace('#', '!')}`,
      )
    if (target.kind === 'issue')
      throw new RelayError(
        'usage',
        `${name} is an issue by its address. If it is a pull request, give ${name} as the target`,
      )
    const options = { method, title, message, sha: sha?.toLowerCase(), ...(auto && { auto }) }
    const watch = { onRetry: (reason: string) => shell.out.say(`${name} is not merged yet: ${reason}`) }
    const condition = sha && ` if its head is ${sha}`
    return ifGreen ? mergeIfGreen(target, options, watch) : merge(target, options, watch, condition)
  })
}

/** Plans a merge. `condition` completes the description. */
function merge(
  target: ActionTarget,
  options: MergeOptions,
  watch: MergeWatch,
  condition = '',
): Action<MergeResult> {
  const { owner, repo, number: pullNumber } = target
  const { method } = options
  const name = formatTarget(target)
  return {
    description: `merge ${name}${method ? ` (${method})` : ''}${condition}`,
    request: { owner, repo, pullNumber, ...options },
    send: (account) => account.merge({ ...target, kind: 'pull' }, options, watch),
    describe: ({ merged, sha }) => ({
      object: marked({ merged, sha: own(sha) }),
      line: sha ?? undefined,
      sentence: sha === null ? undefined : `Merged ${name} as ${sha}`,
      note: merged
        ? undefined
        : `${name} is not merged yet. The code host merges it when its checks have passed`,
    }),
  }
}

/** Plans a merge of exactly the head whose checks were read, so that a later push is not merged unchecked. */
function mergeIfGreen(target: ActionTarget, options: MergeOptions, watch: MergeWatch): Action<MergeResult> {
  const name = formatTarget(target)
  return {
    ...merge(target, options, watch),
    async check(account) {
      const head = await account.headChecks({ ...target, kind: 'pull' })
      if (options.sha !== undefined && options.sha !== head.sha)
        throw new RelayError('conflict', `${name} is not merged: its head is ${head.sha}`)
      requireGreen(name, head)
      const green = ', whose checks and statuses have all succeeded,'
      return merge(target, { ...options, sha: head.sha }, watch, ` if its head is still ${head.sha}${green}`)
    },
  }
}
